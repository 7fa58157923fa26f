//! The ticket of a thread that waits for the first of several channels. The thread that serves it
//! claims the ticket, exactly once.
//!
//! ```text
//!          waits             another claims it                     continues
//!   idle --------> open ------------------------> taken, given ----------> idle
//!                   |  it found a case itself, gave up or was ended          ^
//!                   +--------------------------------------------------------+
//! ```
//!
//! A claim is made with the lock held of the channel that contains the thread's offer, or in which
//! the thread waits. The waiting thread itself checks with the locks of all its channels held. So
//! only claims compete with one another. When a ticket is idle, no channel contains an offer or a
//! queue entry of it.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

const IDLE: usize = 0;
const OPEN: usize = 1;
const GIVEN: usize = 2;
/// This plus the index of the case.
const TAKEN: usize = 3;

/// The outcome of an open ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// None yet.
    Open,
    /// A message was passed to the thread; it is in the channel.
    Given,
    /// The offer of this case was accepted.
    Taken(usize),
}

/// The state of the wait.
#[derive(Debug, Default)]
pub(crate) struct Ticket(AtomicUsize);

impl Ticket {
    /// Begins the wait.
    pub(crate) fn open(&self) {
        self.0.store(OPEN, Ordering::Release);
    }

    /// Ends the wait.
    pub(crate) fn close(&self) {
        self.0.store(IDLE, Ordering::Release);
    }

    /// The outcome; `None` if there is no wait.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match self.0.load(Ordering::Acquire) {
            IDLE => None,
            OPEN => Some(Outcome::Open),
            GIVEN => Some(Outcome::Given),
            taken => Some(Outcome::Taken(taken - TAKEN)),
        }
    }

    /// Sets the outcome of an open ticket; `false` if it was set before.
    pub(crate) fn claim(&self, outcome: Outcome) -> bool {
        let word = match outcome {
            Outcome::Open => OPEN,
            Outcome::Given => GIVEN,
            Outcome::Taken(case) => TAKEN + case,
        };
        self.0.compare_exchange(OPEN, word, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Claims a thread that waits for a message. Returns whether the message may be passed to it:
    /// always if it waits in one channel; in a `select` only if no other case was served.
    pub(crate) fn claim_receiver(&self) -> bool {
        self.outcome().is_none() || self.claim(Outcome::Given)
    }
}
