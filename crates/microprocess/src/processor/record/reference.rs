//! References to microprocesses that are known to be alive.

use core::{fmt, ptr};

use super::{Record, State};

/// A reference to a microprocess that is known to be alive: it waits, or it is the current one.
#[derive(Clone, Copy)]
pub(crate) struct MicroprocessRef(pub(crate) &'static Record);

impl fmt::Debug for MicroprocessRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for MicroprocessRef {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for MicroprocessRef {}

impl MicroprocessRef {
    /// Whether it never runs again although it has not ended.
    #[inline]
    pub(crate) fn is_abandoned(self) -> bool {
        self.0.state.get() == State::Abandoned
    }

    /// The level of its priority.
    #[inline]
    pub(crate) fn priority(self) -> u8 {
        self.0.level()
    }

    pub(crate) fn id(self) -> u64 {
        self.0.id()
    }

    /// Counts a mutex that this microprocess, the caller, has acquired.
    #[inline]
    pub(crate) fn count_lock(self) {
        self.0.mutexes.set(self.0.mutexes.get() + 1);
    }

    /// Uncounts a mutex that this microprocess, the caller, has released. In a program that breaks
    /// the rules, that mutex may not have been counted.
    #[inline]
    pub(crate) fn uncount_lock(self) {
        self.0.mutexes.set(self.0.mutexes.get().saturating_sub(1));
    }
}
