//! The contract that every mechanism implements.
#![expect(unsafe_code, reason = "traits whose implementers promise exclusion")]

use core::fmt;

use kyocho_arch::restartable::{Fifo, Link, NotHeld};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The reason why an operation was not done. A refused operation has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The words belong to a virtual processor that this kernel thread does not hold, or to a CPU
    /// that it does not run on.
    NotHeld,
    /// Another thread is using the word.
    Busy,
    /// More threads take part than the mechanism has room for.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotHeld => {
                "this kernel thread does not hold the virtual processor or CPU of the words"
            }
            Self::Busy => "another thread is using the word",
            Self::Full => "more threads take part than the mechanism was made for: raise its bound",
        })
    }
}

impl core::error::Error for Refusal {}

impl From<NotHeld> for Refusal {
    fn from(NotHeld: NotHeld) -> Self {
        Self::NotHeld
    }
}

/// Test-and-set of one word (Paper 0, figure 1). No method blocks, except that a
/// [`Section`](crate::Section) waits until other threads have left it.
///
/// # Safety
/// Of all threads and microprocesses that find the word clear, `test_and_set` lets exactly one set
/// it, if all of them use one mechanism. Everything that happened before `clear` is visible to the
/// next one that sets the word.
pub unsafe trait TestAndSet {
    /// Name of the mechanism in reports.
    const NAME: &'static str;

    /// Sets the word. Returns whether it was set before.
    ///
    /// # Errors
    /// [`Refusal::NotHeld`]; from a [`Section`](crate::Section) any [`Refusal`]. Nothing has
    /// changed.
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal>;

    /// Clears the word. The caller has set it, possibly on another kernel thread.
    fn clear(&self, word: &AtomicU32) {
        word.store(0, Ordering::Release);
    }

    /// Replaces the word by `new` if it is `expected`. Returns the previous value.
    ///
    /// # Errors
    /// As for [`Self::test_and_set`].
    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal>;

    /// Adds to the word, wrapping. Returns the previous value.
    ///
    /// # Errors
    /// As for [`Self::test_and_set`].
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal>;
}

/// A mechanism that serves every thread of the address space: the basis of blocking locks.
///
/// # Safety
/// The mechanism excludes all its users from each other. `test_and_set`, `compare_and_swap` and
/// `fetch_add` refuse none of them.
pub unsafe trait Everywhere: TestAndSet {}

/// Operations on intrusive lists and queues. Each takes effect completely or not at all.
///
/// # Safety
/// As for [`TestAndSet`]: operations through one mechanism are serialised.
pub unsafe trait Links: TestAndSet {
    /// Inserts a link at the front.
    ///
    /// # Errors
    /// A [`Refusal`]: nothing has changed.
    ///
    /// # Safety
    /// `head` and the links that it leads to are valid and cannot fault. They are accessed with
    /// this `lock` through one mechanism only. `node` is in no list, and stays valid until it is
    /// removed.
    unsafe fn push(
        &self,
        lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal>;

    /// Removes the first link; null if there is none.
    ///
    /// # Errors
    /// A [`Refusal`].
    ///
    /// # Safety
    /// As for [`Links::push`].
    unsafe fn pop(&self, lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal>;

    /// Inserts a link at the end of a queue.
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

    /// Removes the oldest link of a queue; null if there is none.
    ///
    /// # Errors
    /// A [`Refusal`].
    ///
    /// # Safety
    /// As for [`Links::push`].
    unsafe fn dequeue(&self, lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal>;
}
