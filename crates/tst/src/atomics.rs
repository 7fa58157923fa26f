//! The contract kept by atomic instructions: all threads, the honest baseline.
//!
//! Lists are touched under a lock word. A lock-free list would need either two-word
//! compare-and-swap or reclamation against ABA; a word that is busy for a few instructions needs neither.
#![expect(unsafe_code, reason = "follows raw links")]

use core::ptr;

use kyocho_arch::restartable::{Fifo, Link};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::contract::{Links, Refusal, TestAndSet};

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
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        Ok(word.fetch_add(addend, Ordering::AcqRel))
    }
}

// SAFETY: the lock word makes the operations on one list serial.
unsafe impl Links for Atomics {
    unsafe fn push(
        &self,
        lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        self.locked(lock, || {
            // SAFETY: valid, and ours while the lock word is set; so below.
            let first = unsafe { head.replace(node) };
            // SAFETY: in no list until the lock is free again.
            unsafe { node.write(Link { next: first }) };
        })
    }

    unsafe fn pop(&self, lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal> {
        self.locked(lock, || {
            // SAFETY: as above.
            let first = unsafe { head.read() };
            if !first.is_null() {
                // SAFETY: a link of the list is valid.
                let next = unsafe { (*first).next };
                // SAFETY: as above.
                unsafe { head.write(next) };
            }
            first
        })
    }

    unsafe fn enqueue(
        &self,
        lock: &AtomicU32,
        queue: *mut Fifo,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        self.locked(lock, || {
            // SAFETY: as above.
            let queue = unsafe { &mut *queue };
            match ptr::NonNull::new(queue.tail) {
                None => queue.head = node,
                // SAFETY: the last link of the queue is valid.
                Some(last) => unsafe { last.write(Link { next: node }) },
            }
            queue.tail = node;
        })
    }

    unsafe fn dequeue(&self, lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal> {
        self.locked(lock, || {
            // SAFETY: as above.
            let queue = unsafe { &mut *queue };
            if queue.tail.is_null() {
                return ptr::null_mut();
            }
            let first = queue.head;
            if first == queue.tail {
                queue.tail = ptr::null_mut();
            } else {
                // SAFETY: a link of the queue is valid, and not the last one, so its `next` means something.
                queue.head = unsafe { (*first).next };
            }
            first
        })
    }
}
