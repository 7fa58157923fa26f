//! The order word of a microprocess: what others request of it.
//!
//! (`tests/models/ordered.rs` checks this file in every order of memory accesses, with a
//! microprocess that runs, parks, is woken and is suspended.)

use core::fmt;

use kyocho_sys::prim::atomic::{AtomicU64, Ordering};

use crate::processor::record::State;

/// It is to end.
pub(crate) const KILL: u64 = 1;
/// It is to be suspended.
pub(crate) const SUSPEND: u64 = 2;
/// Its step is to end soon: a system call in which it sleeps is interrupted.
pub(crate) const WANTED: u64 = 4;
/// It is in the step that delivers the kill order. This bit is not an order.
const DELIVERING: u64 = 8;
/// Number of bits below the id.
const BITS: u32 = 4;
const MASK: u64 = (1 << BITS) - 1;

/// What the holder of the home must do to a microprocess that it does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// It was suspended, and is runnable again.
    Resumes,
    /// Its wait ends, as if by a time limit.
    WaitEnds,
    /// Its system call is interrupted.
    CallEnds,
}

/// The order word of a record: bits, and above them the id of the microprocess that they are meant
/// for. So an order never reaches the next user of the record.
pub(crate) struct Orders(AtomicU64);

impl fmt::Debug for Orders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Orders({:#b})", self.bits())
    }
}

impl Orders {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// No orders, for a new microprocess.
    #[inline]
    pub(crate) fn renew(&self, id: u64) {
        self.0.store(id << BITS, Ordering::Relaxed);
    }

    /// What is due to a microprocess in `state` whose orders have changed. In other states nothing
    /// is due here: the base checks the orders before it runs the microprocess, and scheduling
    /// points check them while it runs.
    pub(crate) fn due(&self, state: State) -> Due {
        match state {
            State::Suspended if !self.is_suspended() => Due::Resumes,
            State::Parked if self.is_killed() => Due::WaitEnds,
            State::Blocked if self.ends_calls() => Due::CallEnds,
            _ => Due::Nothing,
        }
    }

    fn bits(&self) -> u64 {
        self.0.load(Ordering::Acquire) & MASK
    }

    /// Whether there is any order.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.bits() & !DELIVERING != 0
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.bits() & KILL != 0
    }

    /// Whether it is in the step that delivers the kill order.
    pub(crate) fn is_delivering_kill(&self) -> bool {
        self.bits() & DELIVERING != 0
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.bits() & SUSPEND != 0
    }

    /// Whether a system call in which it sleeps must end early.
    pub(crate) fn ends_calls(&self) -> bool {
        self.bits() & (KILL | WANTED) != 0
    }

    /// Sets and clears bits for microprocess `id`; `false` if the record no longer belongs to it.
    pub(crate) fn change(&self, id: u64, set: u64, clear: u64) -> bool {
        let change =
            |word: u64| (word >> BITS == id << BITS >> BITS).then_some(word & !clear | set);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }

    /// Clears a want: the microprocess is stackful, and has no steps to which one could be
    /// delivered.
    pub(crate) fn forget_want(&self) {
        self.0.fetch_and(!WANTED, Ordering::AcqRel);
    }

    /// Delivers the orders to a stackless microprocess that begins a step; returns whether it is
    /// killed. Each order is delivered once; later ones are for the next step.
    pub(crate) fn deliver(&self) -> bool {
        let delivered =
            |word: u64| word & !(KILL | WANTED) | if word & KILL != 0 { DELIVERING } else { 0 };
        self.is_any()
            && self
                .0
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| Some(delivered(word)))
                .is_ok()
            && self.is_delivering_kill()
    }

    /// Ends the step that delivered the kill order.
    pub(crate) fn end_delivery(&self) {
        self.0.fetch_and(!DELIVERING, Ordering::AcqRel);
    }
}
