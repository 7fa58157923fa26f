//! The order word: what others want of a microprocess.
//!
//! (`tests/models/ordered.rs` runs this file in every order, with a microprocess that runs, parks, is woken and stands still.)

use core::fmt;

use kyocho_sys::prim::atomic::{AtomicU64, Ordering};

use crate::processor::record::State;

/// It is to end.
pub(crate) const KILL: u64 = 1;
/// It is to stand still.
pub(crate) const SUSPEND: u64 = 2;
/// Its step is to end soon: a call into the kernel that it sleeps in ends.
pub(crate) const WANTED: u64 = 4;
/// Its step in which it is told that it is to end is not over. No order.
const TOLD: u64 = 8;
/// Bits below the id.
const BITS: u32 = 4;
const MASK: u64 = (1 << BITS) - 1;

/// What the holder of its home does to a microprocess that it does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// It stood still, and is runnable again.
    GoesOn,
    /// It waits no longer, as if by a time limit.
    WaitEnds,
    /// Its call into the kernel is interrupted.
    CallEnds,
}

/// The order word of a record: bits, and above them the id of the microprocess that they are for. So an order never
/// reaches the next user of the record.
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

    /// None, for a new microprocess.
    #[inline]
    pub(crate) fn renew(&self, id: u64) {
        self.0.store(id << BITS, Ordering::Relaxed);
    }

    /// What is due to one in `state` whose orders have changed; for the rest, the base looks before it runs it, and `heed` while it runs.
    pub(crate) fn due(&self, state: State) -> Due {
        match state {
            State::Suspended if !self.is_suspended() => Due::GoesOn,
            State::Parked if self.is_killed() => Due::WaitEnds,
            State::Blocked if self.ends_calls() => Due::CallEnds,
            _ => Due::Nothing,
        }
    }

    fn bits(&self) -> u64 {
        self.0.load(Ordering::Acquire) & MASK
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.bits() & !TOLD != 0
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.bits() & KILL != 0
    }

    /// Whether it is being told that it is to end.
    pub(crate) fn is_being_told(&self) -> bool {
        self.bits() & TOLD != 0
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.bits() & SUSPEND != 0
    }

    /// Whether a call into the kernel that it sleeps in ends early.
    pub(crate) fn ends_calls(&self) -> bool {
        self.bits() & (KILL | WANTED) != 0
    }

    /// Sets and clears bits for microprocess `id`; `false` if the record is no longer its.
    pub(crate) fn change(&self, id: u64, set: u64, clear: u64) -> bool {
        let change =
            |word: u64| (word >> BITS == id << BITS >> BITS).then_some(word & !clear | set);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }

    /// It takes no steps, and nothing is to be heard between them.
    pub(crate) fn forget_want(&self) {
        self.0.fetch_and(!WANTED, Ordering::AcqRel);
    }

    /// A stackless one begins a step, and is told of what came before, once: whether it is killed. What comes from now on is for the next step.
    pub(crate) fn tell(&self) -> bool {
        let told = |word: u64| word & !(KILL | WANTED) | if word & KILL != 0 { TOLD } else { 0 };
        self.is_any()
            && self
                .0
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| Some(told(word)))
                .is_ok()
            && self.is_being_told()
    }

    /// The step in which it was told is over.
    pub(crate) fn has_heard(&self) {
        self.0.fetch_and(!TOLD, Ordering::AcqRel);
    }
}
