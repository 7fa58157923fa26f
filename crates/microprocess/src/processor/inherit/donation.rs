//! A donation: the level of a lock's first waiter, passed to the lock's owner.

#![expect(unsafe_code, reason = "its cells have a lock each")]

use core::ptr;

use kyocho_sys::prim::cell::Cell;

use super::chain::announce;
use crate::processor::record::{MicroprocessRef, Record};
use crate::processor::vp::Masked;

/// The donation of one lock to its owner. Part of the lock's guarded state; does not move while it
/// is linked, since the lock has a waiter then.
///
/// It is linked as long as there is a waiter, even if that is less urgent than the owner. The owner
/// may become less urgent later, and its locks are not informed of that.
#[derive(Debug)]
pub(crate) struct Donation {
    /// The record in whose list the donation is.
    owner: Cell<Option<MicroprocessRef>>,
    pub(super) level: Cell<u8>,
    pub(super) next: Cell<*const Self>,
}

// SAFETY: its fields are accessed inside its object's guard; `level` and `next` also need the lock
// of the owner's record.
unsafe impl Send for Donation {}

impl Donation {
    pub(crate) const fn new() -> Self {
        Self { owner: Cell::new(None), level: Cell::new(0), next: Cell::new(ptr::null()) }
    }

    /// Updates the donation for the present owner and the level of the first waiter. Call inside
    /// the object's guard. Returns a record whose level changed and that may itself wait: the
    /// caller must [`propagate`](super::propagate) from there, outside the guard.
    #[must_use]
    pub(crate) fn settle(
        &self,
        owner: Option<MicroprocessRef>,
        first: Option<u8>,
        vp: Masked<'_>,
    ) -> Option<&'static Record> {
        // A donation of level 0 would raise no record.
        let recipient = owner.zip(first.filter(|first| *first > 0));
        let leaver =
            self.owner.get().filter(|old| Some(*old) != recipient.map(|(recipient, _)| recipient));
        let leaver = leaver.filter(|old| {
            self.owner.set(None);
            old.0.inheritance.change(old.0, |inheritance| inheritance.unlink(self))
        });
        let recipient = recipient.filter(|(recipient, level)| self.give(*recipient, *level));
        let recipient = recipient.map(|(recipient, _)| recipient);
        for changed in [leaver, recipient].into_iter().flatten() {
            announce(changed.0, vp);
        }
        // If the owner changes, the former owner has just released the lock, and waits for nothing.
        recipient.or(leaver).map(|changed| changed.0)
    }

    /// Donates `level` to `recipient`, in whose list the donation is or to whose list it is added.
    /// Returns whether that changes the effective level of `recipient`.
    fn give(&self, recipient: MicroprocessRef, level: u8) -> bool {
        let is_new = self.owner.replace(Some(recipient)).is_none();
        if !is_new && self.level.get() == level {
            return false;
        }
        recipient.0.inheritance.change(recipient.0, |inheritance| {
            self.level.set(level);
            if is_new {
                inheritance.link(self);
            }
        })
    }
}
