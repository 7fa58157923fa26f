//! The word on which a kernel thread waits: for a virtual processor, or, if it holds one, for work.
//!
//! One futex word. A thread that changes it also wakes the waiter. The waiter swaps the word back
//! to [`WAIT`] before it checks its condition, so no wake is lost:
//!
//! ```text
//!   WAIT ── run, rouse ──► RUN ──┐
//!     ▲ ── exit ─────────► EXIT ─┤ swap by the thread itself
//!     └──────────────────────────┘
//! ```

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

/// There is nothing to do.
const WAIT: u32 = 0;
/// The thread received a virtual processor, or is to stop idling.
const RUN: u32 = 1;
/// The thread is to exit.
const EXIT: u32 = 2;

/// The wait word of one kernel thread.
#[derive(Debug)]
pub(crate) struct WaitWord(AtomicU32);

impl WaitWord {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(WAIT))
    }

    /// Wakes the thread, which has received a virtual processor.
    pub(crate) fn run(&self) {
        self.post(RUN);
    }

    /// Makes the thread, which waits for a virtual processor, exit instead.
    pub(crate) fn exit(&self) {
        self.post(EXIT);
    }

    fn post(&self, what: u32) {
        self.0.store(what, Ordering::Release);
        futex::wake(&self.0, 1);
    }

    /// Ends the thread's idling. Harmless if it comes too late: a thread that waits for a virtual
    /// processor checks whether it has one.
    pub(crate) fn rouse(&self) {
        if self.0.compare_exchange(WAIT, RUN, Ordering::Release, Ordering::Relaxed).is_ok() {
            futex::wake(&self.0, 1);
        }
    }

    /// Sleeps until `given` returns a value; returns `None` if the thread is to exit.
    pub(crate) fn wait<T>(&self, given: impl Fn() -> Option<T>) -> Option<T> {
        loop {
            let word = self.0.swap(WAIT, Ordering::Acquire);
            if word == EXIT {
                return None;
            }
            // `given` returns nothing after a `rouse` that came too late.
            if word == RUN
                && let Some(given) = given()
            {
                return Some(given);
            }
            futex::wait(&self.0, WAIT, None);
        }
    }

    /// Sleeps until [`rouse`](Self::rouse) or `deadline_ns`; returns whether it was roused.
    pub(crate) fn idle(&self, deadline_ns: Option<u64>) -> bool {
        loop {
            if self.0.swap(WAIT, Ordering::Acquire) != WAIT {
                return true;
            }
            if futex::wait(&self.0, WAIT, deadline_ns) == futex::Wait::TimedOut {
                return self.0.swap(WAIT, Ordering::Acquire) != WAIT;
            }
        }
    }

    /// Prepares for the next kernel thread with this record.
    pub(crate) fn renew(&self) {
        self.0.store(WAIT, Ordering::Relaxed);
    }
}
