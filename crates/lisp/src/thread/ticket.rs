//! The ticket of a thread that waits for the first of several channels: whoever serves it claims it, once.
//!
//! ```text
//!          waits             another claims it                     goes on
//!   idle --------> open ------------------------> taken, given ----------> idle
//!                   |  it looked anew, gave up or was ended                  ^
//!                   +--------------------------------------------------------+
//! ```
//!
//! Who claims holds the lock of the channel in which the thread's offer lies or the thread waits; the thread itself looks with the locks of all its
//! channels held. So claims compete with one another alone, and what an open ticket stands for is in no channel any more when it is idle.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

const IDLE: usize = 0;
const OPEN: usize = 1;
const GIVEN: usize = 2;
/// This, and the case.
const TAKEN: usize = 3;

/// What has become of an open ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing yet.
    Open,
    /// A message was given to it; that lies in its channel.
    Given,
    /// The offer that is this case was taken.
    Taken(usize),
}

/// How far the wait is.
#[derive(Debug, Default)]
pub(crate) struct Ticket(AtomicUsize);

impl Ticket {
    /// The wait begins.
    pub(super) fn open(&self) {
        self.0.store(OPEN, Ordering::Release);
    }

    /// The wait is over.
    pub(super) fn close(&self) {
        self.0.store(IDLE, Ordering::Release);
    }

    /// How far the wait is; `None` where there is none.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self.0.load(Ordering::Acquire) {
            IDLE => None,
            OPEN => Some(Outcome::Open),
            GIVEN => Some(Outcome::Given),
            taken => Some(Outcome::Taken(taken - TAKEN)),
        }
    }

    /// Settles what becomes of an open ticket; `false` where it was settled before.
    pub(super) fn claim(&self, outcome: Outcome) -> bool {
        let word = match outcome {
            Outcome::Open => OPEN,
            Outcome::Given => GIVEN,
            Outcome::Taken(case) => TAKEN + case,
        };
        self.0.compare_exchange(OPEN, word, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether the thread, which waits for a message, may be given one: it waits for nothing else, or nobody was faster.
    pub(super) fn claim_receiver(&self) -> bool {
        self.outcome().is_none() || self.claim(Outcome::Given)
    }
}
