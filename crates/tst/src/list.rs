//! A free list: last in, first out.
#![expect(unsafe_code, reason = "follows raw links")]

use core::fmt;
use core::ptr::{self, NonNull};

use kyocho_arch::restartable::Link;
use kyocho_sys::prim::atomic::AtomicU32;
use kyocho_sys::prim::cell::UnsafeCell;

use crate::contract::{Links, Refusal};

/// An intrusive list of what may be used again. The first field of what is listed is its [`Link`].
pub struct FreeList<M> {
    mechanism: M,
    lock: AtomicU32,
    head: UnsafeCell<*mut Link>,
}

// SAFETY: the mechanism makes the operations serial; who pops a link owns what it is part of, and
// `push` asks that this may be another thread.
unsafe impl<M: Send> Send for FreeList<M> {}
// SAFETY: as above.
unsafe impl<M: Sync> Sync for FreeList<M> {}

impl<M: Links> FreeList<M> {
    /// An empty list.
    pub fn new(mechanism: M) -> Self {
        let (lock, head) = (AtomicU32::new(0), UnsafeCell::new(ptr::null_mut()));
        Self { mechanism, lock, head }
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
        // SAFETY: the words are private to this list and go through its mechanism alone.
        unsafe { self.mechanism.push(&self.lock, self.head.get(), node.as_ptr()) }
    }

    /// Takes the link in front; `None` if there is none.
    ///
    /// # Errors
    /// A [`Refusal`].
    #[inline]
    pub fn pop(&self) -> Result<Option<NonNull<Link>>, Refusal> {
        // SAFETY: as above; whoever pushed a link promised that it is valid.
        unsafe { self.mechanism.pop(&self.lock, self.head.get()) }.map(NonNull::new)
    }
}

impl<M: fmt::Debug> fmt::Debug for FreeList<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeList").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}
