//! The donations that one record receives from its waiters, and what the record waits for itself.

#![expect(unsafe_code, reason = "follows pointers to the locks that it holds")]

use core::{fmt, ptr};

use kyocho_sys::prim::atomic::{AtomicU8, Ordering};
use kyocho_sys::prim::cell::Cell;

use super::chain::{Ranked, Wait};
use super::donation::Donation;
use crate::processor::record::Record;
use crate::processor::spin::SpinLock;

/// The inheritance state of a record.
pub(crate) struct Inheritance {
    pub(super) lock: SpinLock,
    /// The highest level donated; 0 for none, since any level is at least that.
    level: AtomicU8,
    /// The level that its joiner donates.
    joiner: Cell<u8>,
    /// The donations of the locks it holds.
    donations: Cell<*const Donation>,
    /// What the record waits for; null if that passes no levels on.
    pub(super) waits: Cell<*const Wait<'static>>,
    /// What the record waits for; null if that does not rank its waiters. Not under the lock: see
    /// [`Ranking`](super::Ranking).
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

    /// The highest level donated; 0 for none.
    ///
    /// This level and the asked level are accessed in one total order. A donor that donates while
    /// the record lowers its asked level sees the lowered one, or the record sees the donation. So
    /// one of the two takes both into account.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::SeqCst)
    }

    /// Clears everything for a new microprocess. The donors of the former one have ended, or no
    /// longer use the record.
    pub(crate) fn forget(&self) {
        self.level.store(0, Ordering::Relaxed);
        self.joiner.set(0);
        self.donations.set(ptr::null());
        self.waits.set(ptr::null());
        self.ranked.set(ptr::null());
    }

    /// The donations to this record. The lock must be held.
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

    /// Computes the highest donation. The lock must be held.
    fn add_up(&self) {
        let given = self.each().map(|donation| donation.level.get());
        let level = given.fold(self.joiner.get(), u8::max);
        if level != self.level.load(Ordering::Relaxed) {
            self.level.store(level, Ordering::SeqCst);
        }
    }

    /// Changes donations under the lock. Returns whether the effective level of `record` changed,
    /// to which this belongs.
    pub(super) fn change(&self, record: &Record, change: impl FnOnce(&Self)) -> bool {
        self.lock.acquire();
        let changed = self.change_locked(record, change);
        self.lock.release();
        changed
    }

    /// The same, with the lock already held.
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
    /// The record's priority as others see it: the asked one or the inherited one, whichever is
    /// higher.
    pub(crate) fn effective_level(&self) -> u8 {
        self.asked_level().max(self.inheritance.level())
    }

    /// The record begins to wait for an object that passes priorities on. Call inside the object's
    /// guard, before the record can be woken.
    pub(crate) fn begin_wait(&self, wait: &Wait<'_>) {
        self.inheritance.lock.acquire();
        self.inheritance.waits.set(ptr::from_ref(wait).cast());
        self.inheritance.lock.release();
    }

    /// The record no longer waits, or is about to be woken. Call inside the same guard.
    pub(crate) fn end_wait(&self) {
        self.inheritance.lock.acquire();
        self.inheritance.waits.set(ptr::null());
        self.inheritance.lock.release();
    }

    /// The record begins to wait for an object that ranks its waiters. Call as the microprocess
    /// itself, before it parks.
    #[inline(always)]
    pub(crate) fn begin_ranked(&self, ranked: &Ranked<'_>) {
        self.inheritance.ranked.set(ptr::from_ref(ranked).cast());
    }

    /// The wait is over. Call as the microprocess itself.
    #[inline(always)]
    pub(crate) fn end_ranked(&self) {
        self.inheritance.ranked.set(ptr::null());
    }

    /// Releases the inheritance lock that was held when
    /// [`Source::try_pass_on`](super::Source::try_pass_on) was called.
    pub(crate) fn release_inheritance(&self) {
        self.inheritance.lock.release();
    }
}
