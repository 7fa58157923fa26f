//! What one lock gives to its owner: the level of its first waiter.

#![expect(unsafe_code, reason = "its cells have a lock each")]

use core::ptr;

use kyocho_sys::prim::cell::Cell;

use super::chain::announce;
use crate::processor::record::{MicroprocessRef, Record};
use crate::processor::vp::Masked;

/// What one lock gives to its owner. Belongs to the lock's guarded state, and does not move while it is linked: somebody waits.
///
/// It is linked as long as somebody waits, be that less urgent than the owner: the owner may become less urgent still, and nobody tells
/// its locks.
#[derive(Debug)]
pub(crate) struct Donation {
    /// Whose list it is in.
    owner: Cell<Option<MicroprocessRef>>,
    pub(super) level: Cell<u8>,
    pub(super) next: Cell<*const Self>,
}

// SAFETY: its fields are touched inside its object's guard, `level` and `next` also under the lock of the owner's record.
unsafe impl Send for Donation {}

impl Donation {
    pub(crate) const fn new() -> Self {
        Self { owner: Cell::new(None), level: Cell::new(0), next: Cell::new(ptr::null()) }
    }

    /// Makes it right for the present owner and the level of the first waiter. Inside the object's guard. Returns whoever has another
    /// level now and may wait for something in turn: [`propagate`](super::propagate) from there, outside the guard.
    #[must_use]
    pub(crate) fn settle(
        &self,
        owner: Option<MicroprocessRef>,
        first: Option<u8>,
        vp: Masked<'_>,
    ) -> Option<&'static Record> {
        // The lowest level is everybody's.
        let heir = owner.zip(first.filter(|first| *first > 0));
        let leaver = self.owner.get().filter(|old| Some(*old) != heir.map(|(heir, _)| heir));
        let leaver = leaver.filter(|old| {
            self.owner.set(None);
            old.0.inheritance.change(old.0, |inheritance| inheritance.unlink(self))
        });
        let heir = heir.filter(|(heir, level)| self.give(*heir, *level));
        let heir = heir.map(|(heir, _)| heir);
        for changed in [leaver, heir].into_iter().flatten() {
            announce(changed.0, vp);
        }
        // Where the owner changes, the one before has just left, and waits for nothing.
        heir.or(leaver).map(|changed| changed.0)
    }

    /// Gives `level` to `heir`, whose list it is in, or joins it; tells whether that changes the effective level there.
    fn give(&self, heir: MicroprocessRef, level: u8) -> bool {
        let is_new = self.owner.replace(Some(heir)).is_none();
        if !is_new && self.level.get() == level {
            return false;
        }
        heir.0.inheritance.change(heir.0, |inheritance| {
            self.level.set(level);
            if is_new {
                inheritance.link(self);
            }
        })
    }
}
