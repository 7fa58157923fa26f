//! Where a kernel thread waits: for a virtual processor, or, with one, for something to do.
//!
//! One futex word. Whoever changes it wakes; a thread takes what it says back to [`WAIT`] before it looks, so nothing is said in vain:
//!
//! ```text
//!   WAIT ── run, rouse ──► RUN ──┐
//!     ▲ ── exit ─────────► EXIT ─┤ swap by the thread itself
//!     └──────────────────────────┘
//! ```

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

/// Nothing to do.
const WAIT: u32 = 0;
/// A virtual processor was given, or its idling is over.
const RUN: u32 = 1;
/// The runtime stops.
const EXIT: u32 = 2;

/// The word of one kernel thread.
#[derive(Debug)]
pub(crate) struct Turn(AtomicU32);

impl Turn {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(WAIT))
    }

    /// A virtual processor was given to the thread.
    pub(crate) fn run(&self) {
        self.say(RUN);
    }

    /// The thread, which waits for a processor, is to exit instead.
    pub(crate) fn exit(&self) {
        self.say(EXIT);
    }

    fn say(&self, what: u32) {
        self.0.store(what, Ordering::Release);
        futex::wake(&self.0, 1);
    }

    /// Ends its idling. Comes too late harmlessly: who waits for a processor looks whether it has one.
    pub(crate) fn rouse(&self) {
        if self.0.compare_exchange(WAIT, RUN, Ordering::Release, Ordering::Relaxed).is_ok() {
            futex::wake(&self.0, 1);
        }
    }

    /// Sleeps until `given` finds what was given; `None` when the thread is to exit.
    pub(crate) fn wait<T>(&self, given: impl Fn() -> Option<T>) -> Option<T> {
        loop {
            let word = self.0.swap(WAIT, Ordering::Acquire);
            if word == EXIT {
                return None;
            }
            // Roused too late, it has none.
            if word == RUN
                && let Some(given) = given()
            {
                return Some(given);
            }
            futex::wait(&self.0, WAIT, None);
        }
    }

    /// Sleeps until [`rouse`](Self::rouse) or `deadline_ns`; tells whether it was roused.
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

    /// For the next kernel thread with this record.
    pub(crate) fn renew(&self) {
        self.0.store(WAIT, Ordering::Relaxed);
    }
}
