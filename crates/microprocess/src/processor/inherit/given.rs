//! What one record is given by those who wait for it, and what it waits for itself.

#![expect(unsafe_code, reason = "follows pointers to the locks that it holds")]

use core::{fmt, ptr};

use kyocho_sys::prim::atomic::{AtomicU8, Ordering};
use kyocho_sys::prim::cell::Cell;

use super::chain::{Ranked, Wait};
use super::donation::Donation;
use crate::processor::record::Record;
use crate::processor::spin::SpinLock;

/// What a record keeps about what it is given.
pub(crate) struct Inheritance {
    pub(super) lock: SpinLock,
    /// The highest level given, 0 for none: any level is at least that.
    level: AtomicU8,
    /// Of who joins it.
    joiner: Cell<u8>,
    /// Of the locks it holds.
    donations: Cell<*const Donation>,
    /// What it waits for; null for what passes nothing on.
    pub(super) waits: Cell<*const Wait<'static>>,
    /// What it waits for; null for what does not rank. Not under the lock: see [`Ranking`](super::Ranking).
    pub(super) ranked: Cell<*const Ranked<'static>>,
}

impl fmt::Debug for Inheritance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inheritance({})", self.level())
    }
}

impl Inheritance {
    pub(crate) const fn new() -> Self {
        Self {
            lock: SpinLock::new(),
            level: AtomicU8::new(0),
            joiner: Cell::new(0),
            donations: Cell::new(ptr::null()),
            waits: Cell::new(ptr::null()),
            ranked: Cell::new(ptr::null()),
        }
    }

    /// The highest level given; 0 for none.
    ///
    /// It and the level that was asked for are in one order for everybody: whoever gives while the record asks for less sees that, or
    /// is seen by the record. So one of them takes the gift into account.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::SeqCst)
    }

    /// Forgets everything: whoever gave it is gone, or will never look.
    pub(crate) fn forget(&self) {
        self.level.store(0, Ordering::Relaxed);
        self.joiner.set(0);
        self.donations.set(ptr::null());
        self.waits.set(ptr::null());
        self.ranked.set(ptr::null());
    }

    /// The donations to it. The lock is held.
    fn each(&self) -> impl Iterator<Item = &Donation> {
        // SAFETY: linked donations are alive, see `Donation`; links change under the lock only.
        let mut next = unsafe { self.donations.get().as_ref() };
        core::iter::from_fn(move || {
            let here = next?;
            // SAFETY: as above.
            next = unsafe { here.next.get().as_ref() };
            Some(here)
        })
    }

    /// Adds up. The lock is held.
    fn add_up(&self) {
        let given = self.each().map(|donation| donation.level.get());
        let level = given.fold(self.joiner.get(), u8::max);
        if level != self.level.load(Ordering::Relaxed) {
            self.level.store(level, Ordering::SeqCst);
        }
    }

    /// Changes what is given under the lock; tells whether that changed the effective level of `record`, whose this is.
    pub(super) fn change(&self, record: &Record, change: impl FnOnce(&Self)) -> bool {
        self.lock.acquire();
        let changed = self.change_locked(record, change);
        self.lock.release();
        changed
    }

    /// The same; the lock is held.
    pub(super) fn change_locked(&self, record: &Record, change: impl FnOnce(&Self)) -> bool {
        let before = record.effective_level();
        change(self);
        self.add_up();
        record.effective_level() != before
    }

    pub(super) fn set_joiner(&self, level: u8) {
        self.joiner.set(level);
    }

    pub(super) fn link(&self, donation: &Donation) {
        donation.next.set(self.donations.replace(donation));
    }

    pub(super) fn unlink(&self, donation: &Donation) {
        let next = donation.next.replace(ptr::null());
        let is_before = |here: &&Donation| ptr::eq(here.next.get(), donation);
        if ptr::eq(self.donations.get(), donation) {
            self.donations.set(next);
        } else if let Some(before) = self.each().find(is_before) {
            before.next.set(next);
        }
    }
}

impl Record {
    /// Its priority as others see it: what it asked for, or what it inherits.
    pub(crate) fn effective_level(&self) -> u8 {
        self.asked_level().max(self.inheritance.level())
    }

    /// It waits for something that passes priorities on. Inside that one's guard, before it can be woken.
    pub(crate) fn begin_wait(&self, wait: &Wait<'_>) {
        self.inheritance.lock.acquire();
        self.inheritance.waits.set(ptr::from_ref(wait).cast());
        self.inheritance.lock.release();
    }

    /// It waits no longer, or is about to be woken. Inside the same guard.
    pub(crate) fn end_wait(&self) {
        self.inheritance.lock.acquire();
        self.inheritance.waits.set(ptr::null());
        self.inheritance.lock.release();
    }

    /// It waits for something that ranks. By itself, before it parks.
    #[inline(always)]
    pub(crate) fn begin_ranked(&self, ranked: &Ranked<'_>) {
        self.inheritance.ranked.set(ptr::from_ref(ranked).cast());
    }

    /// It waits no longer. By itself.
    #[inline(always)]
    pub(crate) fn end_ranked(&self) {
        self.inheritance.ranked.set(ptr::null());
    }

    /// Releases the inheritance lock, which [`Source::try_pass_on`](super::Source::try_pass_on) was called with.
    pub(crate) fn release_inheritance(&self) {
        self.inheritance.lock.release();
    }
}
