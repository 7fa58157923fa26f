//! The contract implemented by a critical section around each plain operation: the methods that
//! Paper 0 compares with its own.
#![expect(unsafe_code, reason = "follows raw links inside the section")]

use kyocho_arch::restartable::{Fifo, Link};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize};

use crate::contract::{Links, Refusal, TestAndSet};
use crate::plain;

/// A critical section.
///
/// # Safety
/// Between `enter` and `leave` no other thread is inside, among those that the mechanism excludes.
/// Everything done inside is visible to the next thread that enters.
pub unsafe trait Section {
    /// Name of the mechanism in reports.
    const NAME: &'static str;

    /// Passed from `enter` to `leave`.
    type Ticket;

    /// Enters; waits until other threads have left.
    ///
    /// # Errors
    /// A [`Refusal`].
    fn enter(&self) -> Result<Self::Ticket, Refusal>;

    /// Leaves. The calling thread is the one that entered.
    fn leave(&self, ticket: Self::Ticket);
}

/// Runs `body` inside the section. Inlined, so that the size of a method's test-and-set is that of
/// one function (`bench/locks`, table 1).
#[inline(always)]
fn inside<S: Section, T>(section: &S, body: impl FnOnce() -> T) -> Result<T, Refusal> {
    let ticket = section.enter()?;
    let value = body();
    section.leave(ticket);
    Ok(value)
}

// SAFETY: the section serialises the operations. `clear` changes a word only while it is set, when
// no other thread does.
unsafe impl<S: Section> TestAndSet for S {
    const NAME: &'static str = <S as Section>::NAME;

    #[inline]
    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        inside(self, || plain::test_and_set(word))
    }

    #[inline]
    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal> {
        inside(self, || plain::compare_and_swap(word, expected, new))
    }

    #[inline]
    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        inside(self, || plain::fetch_add(word, addend))
    }
}

// SAFETY: as above.
unsafe impl<S: Section> Links for S {
    unsafe fn push(
        &self,
        _lock: &AtomicU32,
        head: *mut *mut Link,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: the caller guarantees the pointers, and no other thread is inside; also below.
        inside(self, || unsafe { plain::push(head, node) })
    }

    unsafe fn pop(&self, _lock: &AtomicU32, head: *mut *mut Link) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        inside(self, || unsafe { plain::pop(head) })
    }

    unsafe fn enqueue(
        &self,
        _lock: &AtomicU32,
        queue: *mut Fifo,
        node: *mut Link,
    ) -> Result<(), Refusal> {
        // SAFETY: as above.
        inside(self, || unsafe { plain::enqueue(queue, node) })
    }

    unsafe fn dequeue(&self, _lock: &AtomicU32, queue: *mut Fifo) -> Result<*mut Link, Refusal> {
        // SAFETY: as above.
        inside(self, || unsafe { plain::dequeue(queue) })
    }
}
