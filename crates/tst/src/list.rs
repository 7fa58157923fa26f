//! A free list: last in, first out.
#![expect(unsafe_code, reason = "follows raw links")]

use core::fmt;
use core::ptr::{self, NonNull};

use kyocho_arch::restartable::Link;
use kyocho_sys::prim::atomic::AtomicU32;
use kyocho_sys::prim::cell::UnsafeCell;

use crate::contract::{Links, Refusal};

/// The words of a list, without the mechanism that keeps them.
pub(crate) struct Head {
    lock: AtomicU32,
    first: UnsafeCell<*mut Link>,
}

// SAFETY: the mechanism makes the operations serial; who pops a link owns what it is part of, and
// `push` asks that this may be another thread.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

impl Head {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self { lock: AtomicU32::new(0), first: UnsafeCell::new(ptr::null_mut()) }
    }

    /// # Safety
    /// As for [`FreeList::push`], and one mechanism keeps the list.
    #[inline]
    pub(crate) unsafe fn push(
        &self,
        mechanism: &impl Links,
        node: NonNull<Link>,
    ) -> Result<(), Refusal> {
        // SAFETY: the words are private, and the mechanism alone is the caller's promise.
        unsafe { mechanism.push(&self.lock, self.first.get(), node.as_ptr()) }
    }

    /// # Safety
    /// One mechanism keeps the list.
    #[inline]
    pub(crate) unsafe fn pop(
        &self,
        mechanism: &impl Links,
    ) -> Result<Option<NonNull<Link>>, Refusal> {
        // SAFETY: as above; whoever pushed a link promised that it is valid.
        unsafe { mechanism.pop(&self.lock, self.first.get()) }.map(NonNull::new)
    }
}

/// An intrusive list of what may be used again. The first field of what is listed is its [`Link`].
pub struct FreeList<M> {
    mechanism: M,
    head: Head,
}

impl<M: Links> FreeList<M> {
    /// An empty list.
    pub fn new(mechanism: M) -> Self {
        Self { mechanism, head: Head::new() }
    }

    /// Puts a link in front.
    ///
    /// # Errors
    /// A [`Refusal`]: the link is still the caller's.
    ///
    /// # Safety
    /// The link is valid until it is popped, by whatever thread, and in no list.
    #[inline]
    pub unsafe fn push(&self, node: NonNull<Link>) -> Result<(), Refusal> {
        // SAFETY: the caller's promise; the head goes through this mechanism alone.
        unsafe { self.head.push(&self.mechanism, node) }
    }

    /// Takes the link in front; `None` if there is none.
    ///
    /// # Errors
    /// A [`Refusal`].
    #[inline]
    pub fn pop(&self) -> Result<Option<NonNull<Link>>, Refusal> {
        // SAFETY: as above.
        unsafe { self.head.pop(&self.mechanism) }
    }
}

impl<M: fmt::Debug> fmt::Debug for FreeList<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeList").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}
