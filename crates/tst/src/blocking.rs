//! Locks and semaphores for kernel threads: who has to wait sleeps in the kernel (futex).
//!
//! Each is one word of 64 bits that the mechanism changes, with what a sleeper looks at in the lower half:
//!
//! ```text
//!   63           32 31            0
//!   ┌──────────────┬──────────────┐
//!   │   waiting    │    state     │     the kernel compares `state` when a thread goes to sleep
//!   └──────────────┴──────────────┘
//! ```
//!
//! One compare-and-swap both takes and learns whether anybody waits, so that no wake is lost and none is sent in vain. A thread
//! counts itself among the waiting before it sleeps; who finds the count not 0 when it gives something back wakes.
//!
//! Over [`Atomics`](crate::Atomics) they are for use; over [`SystemCall`](crate::SystemCall) or [`Lamport`](crate::Lamport) for comparison (Paper 0,
//! figures 12 and 13). Microprocesses have locks of their own, which suspend the microprocess and not its kernel thread.

pub mod mutex;
pub mod rwlock;
pub mod semaphore;

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::contract::{Refusal, TestAndSet};

const _: () = assert!(usize::BITS == 64, "state and waiting share a word");
const _: () = assert!(cfg!(target_endian = "little"), "the lower half comes first");

/// A word changed through a mechanism that serves all who use it.
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
    /// What it is instead.
    #[inline]
    fn compare_and_swap(&self, expected: usize, new: usize) -> Result<(), usize> {
        let old = served(self.mechanism.compare_and_swap(&self.word, expected, new));
        if old == expected { Ok(()) } else { Err(old) }
    }

    /// Adds, wrapping; what it was.
    #[inline]
    fn add(&self, addend: usize) -> usize {
        served(self.mechanism.fetch_add(&self.word, addend))
    }

    /// Sleeps while the state is `state`, until woken or the monotonic clock reads `deadline_ns`.
    fn sleep(&self, state: u32, deadline_ns: Option<u64>) -> futex::Wait {
        futex::wait(self.state_word(), state, deadline_ns)
    }

    /// Wakes at most `count` sleepers.
    fn wake(&self, count: u32) {
        futex::wake(self.state_word(), count);
    }

    /// The lower half, for the kernel alone to look at.
    #[expect(unsafe_code, reason = "names half of a word")]
    fn state_word(&self) -> &AtomicU32 {
        let half = self.word.as_ptr().cast::<u32>();
        // SAFETY: valid and aligned as the whole word is; only the kernel accesses it as a half.
        unsafe { AtomicU32::from_ptr(half) }
    }
}

/// The answer of a mechanism that refuses none of the threads that it is used by.
#[inline]
fn served<T>(answer: Result<T, Refusal>) -> T {
    answer.unwrap_or_else(|why| panic!("the mechanism of a lock does not serve this thread: {why}"))
}
