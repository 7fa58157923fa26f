//! A mechanism that is chosen at run time.
#![expect(unsafe_code, reason = "hands raw words on")]

use kyocho_arch::restartable::{Fifo, Link};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize};

use crate::atomics::Atomics;
use crate::contract::{Links, Refusal, TestAndSet};
use crate::sequences::Restartable;
#[cfg(target_arch = "x86_64")]
use crate::sequences::Rseq;

/// One of the mechanisms. A word must be used through one of them always: none excludes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// For words of a virtual processor.
    Restartable(Restartable),
    /// For words of a CPU.
    #[cfg(target_arch = "x86_64")]
    Rseq(Rseq),
    /// For words of all threads.
    Atomics(Atomics),
}

impl Method {
    /// Name of the mechanism in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Restartable(_) => Restartable::NAME,
            #[cfg(target_arch = "x86_64")]
            Self::Rseq(_) => Rseq::NAME,
            Self::Atomics(_) => Atomics::NAME,
        }
    }
}

/// The same call on the chosen mechanism.
macro_rules! on_each {
    ($method:expr, $it:ident => $call:expr) => {
        match $method {
            Method::Restartable($it) => $call,
            #[cfg(target_arch = "x86_64")]
            Method::Rseq($it) => $call,
            Method::Atomics($it) => $call,
        }
    };
}

// SAFETY: each mechanism implements the contract.
unsafe impl TestAndSet for Method {
    const NAME: &'static str = "chosen at start";

    #[inline]
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        on_each!(self, it => it.test_and_set(word))
    }

    #[inline]
    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal> {
        on_each!(self, it => it.compare_and_swap(word, expected, new))
    }

    #[inline]
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        on_each!(self, it => it.fetch_add(word, addend))
    }
}

// SAFETY: each mechanism implements the contract.
unsafe impl Links for Method {
    #[inline]
    unsafe fn push(
        &self,
        lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller guarantees what the mechanism requires; also below.
        on_each!(self, it => unsafe { it.push(lock, head, node) })
    }

    #[inline]
    unsafe fn pop(&self, lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        on_each!(self, it => unsafe { it.pop(lock, head) })
    }

    #[inline]
    unsafe fn enqueue(
        &self,
        lock: &AtomicU32,
        queue: *mut Fifo,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: as above.
        on_each!(self, it => unsafe { it.enqueue(lock, queue, node) })
    }

    #[inline]
    unsafe fn dequeue(&self, lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        on_each!(self, it => unsafe { it.dequeue(lock, queue) })
    }
}
