//! Locks and semaphores for kernel threads: a thread that must wait sleeps in the kernel (futex).
//!
//! Each is one word of 64 bits, which the mechanism changes. The half that the kernel compares is
//! the lower one:
//!
//! ```text
//!   63           32 31            0
//!   ┌──────────────┬──────────────┐
//!   │   waiting    │    state     │     the kernel compares `state` when a thread goes to sleep
//!   └──────────────┴──────────────┘
//! ```
//!
//! One compare-and-swap both takes the lock and reads whether threads wait. So no wake is lost and
//! none is sent without need. A thread counts itself as waiting before it sleeps. A thread that
//! releases wakes a sleeper if the count is not 0.
//!
//! Over [`Atomics`](crate::Atomics) they are meant for use; over [`SystemCall`](crate::SystemCall)
//! or [`Lamport`](crate::Lamport) for comparison (Paper 0, figures 12 and 13). Microprocesses have
//! locks of their own, which suspend the microprocess instead of its kernel thread.

pub mod mutex;
pub mod rwlock;
pub mod semaphore;

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::contract::{Refusal, TestAndSet};

const _: () = assert!(usize::BITS == 64, "state and waiting share a word");
const _: () = assert!(cfg!(target_endian = "little"), "the lower half comes first");

/// A word, changed through a mechanism that serves all its users.
#[derive(Debug, Default)]
#[repr(C)]
struct Word<M> {
    mechanism: M,
    word: AtomicUsize,
}

impl<M: TestAndSet> Word<M> {
    const fn new(mechanism: M, value: usize) -> Self {
        Self { mechanism, word: AtomicUsize::new(value) }
    }

    #[inline]
    fn load(&self) -> usize {
        self.word.load(Ordering::Acquire)
    }

    /// Replaces `expected` by `new`.
    ///
    /// # Errors
    /// The value of the word, if it is not `expected`.
    #[inline]
    fn compare_and_swap(&self, expected: usize, new: usize) -> Result<(), usize> {
        let old = served(self.mechanism.compare_and_swap(&self.word, expected, new));
        if old == expected { Ok(()) } else { Err(old) }
    }

    /// Adds, wrapping; returns the previous value.
    #[inline]
    fn add(&self, addend: usize) -> usize {
        served(self.mechanism.fetch_add(&self.word, addend))
    }

    /// Sleeps while the state is `state`, until a wake or until the monotonic clock reads
    /// `deadline_ns`.
    fn sleep(&self, state: u32, deadline_ns: Option<u64>) -> futex::Wait {
        futex::wait(self.state_word(), state, deadline_ns)
    }

    /// Wakes at most `count` sleepers.
    fn wake(&self, count: u32) {
        futex::wake(self.state_word(), count);
    }

    /// The lower half, for the kernel alone to compare.
    #[expect(unsafe_code, reason = "names half of a word")]
    fn state_word(&self) -> &AtomicU32 {
        let half = self.word.as_ptr().cast::<u32>();
        // SAFETY: valid and aligned as the whole word is; only the kernel accesses it as a half.
        unsafe { AtomicU32::from_ptr(half) }
    }
}

/// Unwraps the answer of a mechanism that must not refuse any of its users.
#[inline]
fn served<T>(answer: Result<T, Refusal>) -> T {
    answer.unwrap_or_else(|why| {
        panic!("the mechanism of this lock refused the calling thread: {why}")
    })
}
