//! A free list: last in, first out.
#![expect(unsafe_code, reason = "follows raw links")]

use core::fmt;
use core::ptr::{self, NonNull};

use kyocho_arch::restartable::Link;
use kyocho_sys::prim::atomic::AtomicU32;
use kyocho_sys::prim::cell::UnsafeCell;

use crate::contract::{Links, Refusal};

/// The words of a list, without the mechanism that changes them.
pub(crate) struct Head {
    lock: AtomicU32,
    first: UnsafeCell<*mut Link>,
}

// SAFETY: the mechanism serialises the operations. A thread that pops a link owns the object it is
// part of, and `push` requires that this may be another thread.
unsafe impl Send for Head {}
// SAFETY: as above.
unsafe impl Sync for Head {}

impl Head {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self { lock: AtomicU32::new(0), first: UnsafeCell::new(ptr::null_mut()) }
    }

    /// # Safety
    /// As for [`FreeList::push`], and the list is used through one mechanism.
    #[inline]
    pub(crate) unsafe fn push(
        &self,
        mechanism: &impl Links,
        node: NonNull<Link>,
    ) -> Result<(), Refusal> {
        // SAFETY: the words are private to the list; the caller guarantees one mechanism.
        unsafe { mechanism.push(&self.lock, self.first.get(), node.as_ptr()) }
    }

    /// # Safety
    /// The list is used through one mechanism.
    #[inline]
    pub(crate) unsafe fn pop(
        &self,
        mechanism: &impl Links,
    ) -> Result<Option<NonNull<Link>>, Refusal> {
        // SAFETY: as above; `push` required that each link is valid.
        unsafe { mechanism.pop(&self.lock, self.first.get()) }.map(NonNull::new)
    }
}

/// An intrusive list of objects that can be reused. The first field of such an object is its
/// [`Link`].
pub struct FreeList<M> {
    mechanism: M,
    head: Head,
}

impl<M: Links> FreeList<M> {
    /// An empty list.
    pub fn new(mechanism: M) -> Self {
        Self { mechanism, head: Head::new() }
    }

    /// Inserts a link at the front.
    ///
    /// # Errors
    /// A [`Refusal`]: the link still belongs to the caller.
    ///
    /// # Safety
    /// The link is in no list, and is valid until it is popped, which any thread may do.
    #[inline]
    pub unsafe fn push(&self, node: NonNull<Link>) -> Result<(), Refusal> {
        // SAFETY: the caller guarantees the link; the head is used through this mechanism alone.
        unsafe { self.head.push(&self.mechanism, node) }
    }

    /// Removes the first link; `None` if the list is empty.
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
