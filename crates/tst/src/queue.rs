//! A queue: first in, first out.
#![expect(unsafe_code, reason = "follows raw links")]

use core::fmt;
use core::ptr::NonNull;

use kyocho_arch::restartable::{Fifo, Link};
use kyocho_sys::prim::atomic::AtomicU32;
use kyocho_sys::prim::cell::UnsafeCell;

use crate::contract::{Links, Refusal};

/// An intrusive queue. The first field of a queued object is its [`Link`].
pub struct Queue<M> {
    mechanism: M,
    lock: AtomicU32,
    ends: UnsafeCell<Fifo>,
}

// SAFETY: as for `FreeList`.
unsafe impl<M: Send> Send for Queue<M> {}
// SAFETY: as for `FreeList`.
unsafe impl<M: Sync> Sync for Queue<M> {}

impl<M: Links> Queue<M> {
    /// An empty queue.
    pub fn new(mechanism: M) -> Self {
        Self { mechanism, lock: AtomicU32::new(0), ends: UnsafeCell::new(Fifo::new()) }
    }

    /// Inserts a link at the end.
    ///
    /// # Errors
    /// A [`Refusal`]: the link still belongs to the caller.
    ///
    /// # Safety
    /// The link is in no list, and is valid until it is popped, which any thread may do.
    #[inline]
    pub unsafe fn push(&self, node: NonNull<Link>) -> Result<(), Refusal> {
        // SAFETY: the words are private to this queue and used through its mechanism alone.
        unsafe { self.mechanism.enqueue(&self.lock, self.ends.get(), node.as_ptr()) }
    }

    /// Removes the oldest link; `None` if the queue is empty.
    ///
    /// # Errors
    /// A [`Refusal`].
    #[inline]
    pub fn pop(&self) -> Result<Option<NonNull<Link>>, Refusal> {
        // SAFETY: as above; `push` required that each link is valid.
        unsafe { self.mechanism.dequeue(&self.lock, self.ends.get()) }.map(NonNull::new)
    }
}

impl<M: fmt::Debug> fmt::Debug for Queue<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}
