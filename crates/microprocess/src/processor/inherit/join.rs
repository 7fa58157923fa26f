//! Joining: a joiner donates its level to the microprocess whose end it awaits.

use core::cell::Cell;

use super::chain::{PassedOn, Ranking, Source, Wait, announce, propagate};
use crate::processor::record::{Record, remote};
use crate::processor::vp::Masked;

/// A joiner's wait for the end of a microprocess.
pub(crate) struct Join {
    joined: &'static Record,
    /// Whether the joiner has donated a level, which must be taken back.
    gives: Cell<bool>,
}

impl Join {
    pub(crate) const fn new(joined: &'static Record) -> Self {
        Self { joined, gives: Cell::new(false) }
    }

    /// Called before `me` waits, if it is more urgent. `wait` describes the wait.
    #[cold]
    pub(crate) fn begin(&self, vp: Masked<'_>, me: &'static Record, wait: &Wait<'_>) {
        self.gives.set(true);
        me.begin_wait(wait);
        propagate(vp, me);
    }

    /// Called when the wait is over, also if `me` was killed.
    #[inline]
    pub(crate) fn end(&self, vp: Masked<'_>, me: &'static Record) {
        if self.gives.get() {
            self.take_back(vp, me);
        }
    }

    #[cold]
    fn take_back(&self, vp: Masked<'_>, me: &'static Record) {
        me.end_wait();
        if let Some(lowered) = self.give(0, vp) {
            propagate(vp, lowered);
        }
    }

    /// Donates `level` to the joined record; returns that record if its effective level changed.
    fn give(&self, level: u8, vp: Masked<'_>) -> Option<&'static Record> {
        let Self { joined, .. } = *self;
        let changed =
            joined.inheritance.change(joined, |inheritance| inheritance.set_joiner(level));
        changed.then(|| announce(joined, vp))?;
        Some(joined)
    }
}

impl Source for Join {
    fn try_pass_on(&self, record: &'static Record, vp: Masked<'_>) -> PassedOn {
        let Self { joined, .. } = *self;
        let inheritance = &joined.inheritance;
        // The joiner frees the slot only after it has cleared its wait. To clear it, it needs the
        // lock held here.
        let changed = inheritance.lock.try_acquire().then(|| {
            let level = record.effective_level();
            let changed =
                inheritance.change_locked(joined, |inheritance| inheritance.set_joiner(level));
            inheritance.lock.release();
            changed
        });
        if changed == Some(true) {
            announce(joined, vp);
        }
        record.release_inheritance();
        changed.map_or(PassedOn::Busy, |changed| PassedOn::To(changed.then_some(joined)))
    }
}

/// For a joiner that was not more urgent than the joined microprocess when it began to wait. So it
/// is not linked as a [`Source`]. If it becomes more urgent while it waits, it donates here.
impl Ranking for Join {
    fn rank_anew(&self, record: &'static Record, vp: Masked<'_>) -> Option<&'static Record> {
        self.gives.set(true);
        self.give(record.effective_level(), vp)
    }
}

/// `joined` has become less urgent. Its joiner may now be more urgent, without having donated yet.
/// Call as the holder of the home.
#[cold]
pub(crate) fn remind_joiner(joined: &'static Record) {
    joined.completion.lock.acquire();
    let joiner = joined.completion.joiner.get();
    joined.completion.lock.release();
    if let Some(joiner) =
        joiner.filter(|joiner| joiner.effective_level() > joined.effective_level())
    {
        // Only the joiner's home can make it donate. If the joiner no longer waits, its home checks
        // its level and changes nothing.
        joiner.post(remote::CHANGED);
    }
}
