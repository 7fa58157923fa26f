//! What every mechanism promises.
#![expect(unsafe_code, reason = "traits whose implementers promise exclusion")]

use core::fmt;

use kyocho_arch::restartable::{Fifo, Link, NotHeld};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Why an operation was not done. It left everything as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// This kernel thread does not hold the virtual processor, or does not run on the CPU, that the words belong to.
    NotHeld,
    /// Somebody else is at it.
    Busy,
    /// More threads take part than the mechanism has room for.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHeld => "this kernel thread is not where the words belong",
            Self::Busy => "somebody else is at it",
            Self::Full => "more threads take part than there is room for: make it larger",
        })
    }
}

impl core::error::Error for Refusal {}

impl From<NotHeld> for Refusal {
    fn from(NotHeld: NotHeld) -> Self {
        Self::NotHeld
    }
}

/// Test-and-set of one word, as in Paper 0, figure 1.
///
/// # Safety
/// Of all threads and microprocesses that find the word clear, `test_and_set` lets exactly one set it, as long as
/// the word is touched by one mechanism only. What happened before `clear` has happened for whoever
/// sets the word next.
pub unsafe trait TestAndSet {
    /// Its name in reports.
    const NAME: &'static str;

    /// Sets the word; whether it was set before.
    ///
    /// # Errors
    /// [`Refusal::NotHeld`].
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal>;

    /// Clears the word. The caller has set it, and may have moved to another kernel thread since.
    fn clear(&self, word: &AtomicU32) {
        word.store(0, Ordering::Release);
    }

    /// Replaces the word by `new` if it is `expected`; what it was.
    ///
    /// # Errors
    /// [`Refusal::NotHeld`].
    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal>;

    /// Adds to the word, wrapping; what it was.
    ///
    /// # Errors
    /// [`Refusal::NotHeld`].
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal>;
}

/// A mechanism that serves every thread of the address space: what a lock that blocks may be built on.
///
/// # Safety
/// It excludes all threads that use it from each other, and `test_and_set`, `compare_and_swap` and `fetch_add` refuse none of them.
pub unsafe trait Everywhere: TestAndSet {}

/// Intrusive lists and queues: each operation happens as a whole or not at all.
///
/// # Safety
/// As for [`TestAndSet`]: operations through one mechanism look as if done one after the other.
pub unsafe trait Links: TestAndSet {
    /// Puts a link in front.
    ///
    /// # Errors
    /// A [`Refusal`]; so for all operations below.
    ///
    /// # Safety
    /// `head` and the links that it leads to are valid, cannot fault, and touched with this `lock`
    /// through one mechanism only; `node` is in no list, and stays valid until it leaves. So below.
    unsafe fn push(
        &self,
        lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal>;

    /// Takes the link in front; null if there is none.
    ///
    /// # Errors
    /// A [`Refusal`].
    ///
    /// # Safety
    /// As for [`Links::push`].
    unsafe fn pop(&self, lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal>;

    /// Puts a link at the end.
    ///
    /// # Errors
    /// A [`Refusal`].
    ///
    /// # Safety
    /// As for [`Links::push`].
    unsafe fn enqueue(
        &self,
        lock: &AtomicU32,
        queue: *mut Fifo,
        node: *mut Link,
    ) -> Result<(), Refusal>;

    /// Takes the link that came first; null if there is none.
    ///
    /// # Errors
    /// A [`Refusal`].
    ///
    /// # Safety
    /// As for [`Links::push`].
    unsafe fn dequeue(&self, lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal>;
}
