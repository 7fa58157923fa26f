//! The contract kept by atomic instructions: all threads, the honest baseline.
//!
//! Lists are touched under a lock word. A lock-free list would need either two-word
//! compare-and-swap or reclamation against ABA; a word that is busy for a few instructions needs neither.
#![expect(unsafe_code, reason = "follows raw links")]

use kyocho_arch::restartable::{Fifo, Link};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::contract::{Everywhere, Links, Refusal, TestAndSet};
use crate::plain;

/// Exclusion between all threads of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Atomics;

impl Atomics {
    /// Runs `body` while the lock word is ours.
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

// SAFETY: one compare-and-swap decides; acquire here pairs with release in `clear`.
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

// SAFETY: the processor knows every thread.
unsafe impl Everywhere for Atomics {}

// SAFETY: the lock word makes the operations on one list serial.
unsafe impl Links for Atomics {
    unsafe fn push(
        &self,
        lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller's promise, and ours alone while the lock word is set; so below.
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
