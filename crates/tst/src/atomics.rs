//! The contract implemented by atomic instructions: for all threads, and the baseline of
//! comparisons.
//!
//! List operations run under a lock word. A lock-free list would need two-word compare-and-swap or
//! memory reclamation against ABA. A lock word that is set for a few instructions needs neither.
#![expect(unsafe_code, reason = "follows raw links")]

use kyocho_arch::restartable::{Fifo, Link};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::contract::{Everywhere, Links, Refusal, TestAndSet};
use crate::plain;

/// Exclusion between all threads of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Atomics;

impl Atomics {
    /// Runs `body` while the caller holds the lock word; refuses if it is taken.
    #[inline]
    fn locked<T>(self, lock: &AtomicU32, body: impl FnOnce() -> T) -> Result<T, Refusal> {
        if self.test_and_set(lock)? {
            return Err(Refusal::Busy);
        }
        let value = body();
        self.clear(lock);
        Ok(value)
    }
}

// SAFETY: one compare-and-swap decides. Its acquire pairs with the release in `clear`.
unsafe impl TestAndSet for Atomics {
    const NAME: &'static str = "atomics";

    #[inline(always)]
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        Ok(word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err())
    }

    #[inline(always)]
    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal> {
        let answer = word.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire);
        Ok(answer.unwrap_or_else(|old| old))
    }

    #[inline(always)]
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        Ok(word.fetch_add(addend, Ordering::AcqRel))
    }
}

// SAFETY: atomic instructions serve every thread.
unsafe impl Everywhere for Atomics {}

// SAFETY: the lock word serialises the operations on a list.
unsafe impl Links for Atomics {
    unsafe fn push(
        &self,
        lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller guarantees the pointers, and only this thread has the lock word; also
        // below.
        self.locked(lock, || unsafe { plain::push(head, node) })
    }

    unsafe fn pop(&self, lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        self.locked(lock, || unsafe { plain::pop(head) })
    }

    unsafe fn enqueue(
        &self,
        lock: &AtomicU32,
        queue: *mut Fifo,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: as above.
        self.locked(lock, || unsafe { plain::enqueue(queue, node) })
    }

    unsafe fn dequeue(&self, lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        self.locked(lock, || unsafe { plain::dequeue(queue) })
    }
}
