//! Joining: who waits for the end of another gives it its level.

use core::cell::Cell;

use super::chain::{PassedOn, Ranking, Source, Wait, announce, propagate};
use crate::processor::record::{Record, remote};
use crate::processor::vp::Masked;

/// A joiner's wait for the end of a microprocess.
pub(crate) struct Join {
    joined: &'static Record,
    /// Whether the joiner was ever more urgent.
    gives: Cell<bool>,
}

impl Join {
    pub(crate) const fn new(joined: &'static Record) -> Self {
        Self { joined, gives: Cell::new(false) }
    }

    /// `me`, which is more urgent, is going to wait, as `wait` says.
    #[cold]
    pub(crate) fn begin(&self, vp: Masked<'_>, me: &'static Record, wait: &Wait<'_>) {
        self.gives.set(true);
        me.begin_wait(wait);
        propagate(vp, me);
    }

    /// The wait is over, perhaps because `me` was killed.
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

    /// Gives `level` to who is joined; returns it where that changes its own.
    fn give(&self, level: u8, vp: Masked<'_>) -> Option<&'static Record> {
        let Self { joined, .. } = *self;
        let changed = joined.inheritance.change(joined, |given| given.set_joiner(level));
        changed.then(|| announce(joined, vp))?;
        Some(joined)
    }
}

impl Source for Join {
    fn try_pass_on(&self, who: &'static Record, vp: Masked<'_>) -> PassedOn {
        let Self { joined, .. } = *self;
        let inheritance = &joined.inheritance;
        // Who joins frees the slot after it has cleared its wait, for which it needs the lock that we hold.
        let changed = inheritance.lock.try_acquire().then(|| {
            let level = who.effective_level();
            let changed = inheritance.change_locked(joined, |given| given.set_joiner(level));
            inheritance.lock.release();
            changed
        });
        if changed == Some(true) {
            announce(joined, vp);
        }
        who.release_inheritance();
        changed.map_or(PassedOn::Busy, |changed| PassedOn::To(changed.then_some(joined)))
    }
}

/// A joiner that was not more urgent when it began to wait, and so is no [`Source`], is now.
impl Ranking for Join {
    fn rank_anew(&self, who: &'static Record, vp: Masked<'_>) -> Option<&'static Record> {
        self.gives.set(true);
        self.give(who.effective_level(), vp)
    }
}

/// `joined` has become less urgent: who joins it may be more urgent now, and have given nothing so far. By the home's holder.
#[cold]
pub(crate) fn remind_joiner(joined: &'static Record) {
    joined.completion.lock.acquire();
    let joiner = joined.completion.joiner.get();
    joined.completion.lock.release();
    if let Some(joiner) =
        joiner.filter(|joiner| joiner.effective_level() > joined.effective_level())
    {
        // Its home alone can make it give. If it waits no longer, that looks at its level, and changes nothing.
        joiner.post(remote::CHANGED);
    }
}
