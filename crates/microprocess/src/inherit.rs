//! Priority inheritance: who is waited for runs at the priority of whoever waits, through chains, exactly as long as the wait.
//!
//! ```text
//!   waiter, level 40 ── waits for ──► mutex ── donation: 40 ──► holder, asked for 10, runs at 40
//!                                                                 └── waits for ──► mutex ── donation: 40 ──► its holder ...
//! ```
//!
//! A lock with an owner (a mutex, a reader-writer lock that a writer holds) *donates* the level of its first waiter to the owner, and a
//! joiner its level to whom it joins. A record adds up what it is given: `effective = max(asked, inherited)`. Where nobody waits that is more
//! urgent than the owner asked to be, there is no donation, and locking and unlocking cost what they cost without all this.
//!
//! When an effective level changes, the record's home is told (*Changed*), and if the record itself waits, it moves in the queue of what it
//! waits for, which may change that one's donation, and so on, for at most [`CHAIN_MAX`] steps ([`propagate`]). In a ring of waits levels
//! rise to the highest, so that ends; there they do not sink again, but nobody in a ring runs again either, unless by a time limit.
//!
//! | who waits for | who inherits |
//! |---|---|
//! | a mutex, alone or after a condition variable | its holder |
//! | a reader-writer lock that a writer holds | the writer; readers are many, and not known |
//! | the end of another | that one |
//! | a call to another process | its worker, by the level in the frame (`gate`) |
//! | a semaphore, a barrier, a scope, a notification | nobody: whoever will release, arrive or notify is not known before it does |
//! | room or a message in a channel | nobody: any holder of the other end may come, and ends are cloned and handed on |
//!
//! Where nobody inherits, waiters are served by priority, first come first served among equals, and one whose priority changes while it waits is
//! queued anew ([`Ranking`]). What needs more takes a mutex around its state, or a call.
//!
//! **Lock order:** an object's guard, then a record's inheritance lock; the other way round it is only tried ([`Source::try_pass_on`]). No two
//! inheritance locks are waited for at once.
//!
//! **Invariant:** while `waits` of a record is set, what it points to, the waiter's own frame and the object, is alive: it is cleared, under
//! the object's guard and the record's lock, before the wait ends.
#![expect(unsafe_code, reason = "follows pointers to waiters' frames and to locks")]

use core::cell::Cell;
use core::hint::spin_loop;
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicU8, Ordering};

use crate::record::{MicroprocessRef, Record, State, remote};
use crate::reflection::let_others_run;
use crate::spin::SpinLock;
use crate::vp::{Vp, attention};

/// The longest chain of waits that a change runs along.
const CHAIN_MAX: usize = 64;
/// Attempts before the kernel is asked to run somebody else.
const LOOKS: u32 = 200;

/// Something that can be waited for and passes priorities on.
pub(crate) trait Source {
    /// `who`, whose inheritance lock is held and who waits for this, has another effective level. Never waits for a lock. Either way the
    /// lock is released.
    fn try_pass_on(&self, who: &'static Record, vp: &'static Vp) -> PassedOn;
}

/// What came of an attempt to pass a level on.
pub(crate) enum PassedOn {
    /// A lock was held: try again.
    Busy,
    /// Done; who has another level because of it.
    To(Option<&'static Record>),
}

/// What a record keeps about what it is given.
pub(crate) struct Inheritance {
    lock: SpinLock,
    /// The highest level given, 0 for none: any level is at least that.
    level: AtomicU8,
    /// Of who joins it.
    joiner: Cell<u8>,
    /// Of the locks it holds.
    donations: Cell<*const Donation>,
    /// What it waits for; null for what passes nothing on.
    waits: Cell<*const Wait<'static>>,
    /// What it waits for; null for what does not rank. Not under the lock: see [`Ranking`].
    ranked: Cell<*const Ranked<'static>>,
}

/// A wait for `source`, in the waiter's own frame.
pub(crate) struct Wait<'a> {
    pub(crate) source: &'a dyn Source,
}

/// Something that is waited for and goes by the level of who waits.
///
/// Costs a wait one store, for it is asked by the holder of the waiter's home alone, which nobody but that one can make run meanwhile.
pub(crate) trait Ranking {
    /// `who`, which waits for this, has another effective level; returns who has another one because of that. By the holder of `vp`, its home,
    /// masked, in no guard.
    fn rank_anew(&self, who: &'static Record, vp: &'static Vp) -> Option<&'static Record>;
}

/// A wait for something that ranks, in the waiter's own frame.
pub(crate) struct Ranked<'a> {
    pub(crate) by: &'a dyn Ranking,
}

/// What one lock gives to its owner. Belongs to the lock's guarded state, and does not move while it is linked: somebody waits.
#[derive(Debug)]
pub(crate) struct Donation {
    /// Whose list it is in.
    owner: Cell<Option<MicroprocessRef>>,
    level: Cell<u8>,
    next: Cell<*const Self>,
}

// SAFETY: its fields are touched inside its object's guard, `level` and `next` also under the lock of the owner's record.
unsafe impl Send for Donation {}

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
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.level.load(Ordering::Relaxed)
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
        self.level.store(given.fold(self.joiner.get(), u8::max), Ordering::Relaxed);
    }

    /// Changes what is given under the lock; tells whether that changed the effective level of `record`, whose this is.
    fn change(&self, record: &Record, change: impl FnOnce(&Self)) -> bool {
        self.lock.acquire();
        let changed = self.change_locked(record, change);
        self.lock.release();
        changed
    }

    fn change_locked(&self, record: &Record, change: impl FnOnce(&Self)) -> bool {
        let before = record.effective_level();
        change(self);
        self.add_up();
        record.effective_level() != before
    }

    fn unlink(&self, donation: &Donation) {
        let next = donation.next.replace(ptr::null());
        let is_before = |here: &&Donation| ptr::eq(here.next.get(), donation);
        if ptr::eq(self.donations.get(), donation) {
            self.donations.set(next);
        } else if let Some(before) = self.each().find(is_before) {
            before.next.set(next);
        }
    }
}

impl Donation {
    pub(crate) const fn new() -> Self {
        Self { owner: Cell::new(None), level: Cell::new(0), next: Cell::new(ptr::null()) }
    }

    /// Makes it right for the present owner and the level of the first waiter. Inside the object's guard. Returns whoever has another
    /// level now and may wait for something in turn: [`propagate`] from there, outside the guard.
    #[must_use]
    pub(crate) fn settle(
        &self,
        owner: Option<MicroprocessRef>,
        first: Option<u8>,
        vp: &'static Vp,
    ) -> Option<&'static Record> {
        let heir = owner.zip(first).filter(|(owner, first)| *first > owner.0.asked_level());
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
}

impl Donation {
    /// Gives `level` to `heir`, whose list it is in, or joins it; tells whether that changes the effective level there.
    fn give(&self, heir: MicroprocessRef, level: u8) -> bool {
        let is_new = self.owner.replace(Some(heir)).is_none();
        heir.0.inheritance.change(heir.0, |inheritance| {
            self.level.set(level);
            if is_new {
                self.next.set(inheritance.donations.replace(self));
            }
        })
    }
}

/// Lets the home of `record`, whose effective level has changed, take it over. By the holder of `vp`, masked.
pub(crate) fn announce(record: &'static Record, vp: &'static Vp) {
    if ptr::eq(record.home(), vp) {
        vp.changed(record);
        vp.attention.fetch_or(attention::RECONSIDER, Ordering::Relaxed);
    } else {
        record.post(remote::CHANGED);
    }
}

/// Carries the new level of `record` along the chain of waits that begins with it. By the holder of `vp`, masked, in no guard.
#[cold]
pub(crate) fn propagate(vp: &'static Vp, record: &'static Record) {
    let mut at = record;
    for _ in 0..CHAIN_MAX {
        match pass_on(vp, at) {
            Some(next) => at = next,
            None => return,
        }
    }
}

fn pass_on(vp: &'static Vp, who: &'static Record) -> Option<&'static Record> {
    let mut looks = 0_u32;
    loop {
        let inheritance = &who.inheritance;
        inheritance.lock.acquire();
        // SAFETY: null, or alive while the lock is held (module text).
        let Some(wait) = (unsafe { inheritance.waits.get().as_ref() }) else {
            inheritance.lock.release();
            return rank_anew(vp, who);
        };
        match wait.source.try_pass_on(who, vp) {
            PassedOn::To(next) => return next,
            PassedOn::Busy => {
                looks += 1;
                if looks.is_multiple_of(LOOKS) {
                    let_others_run();
                }
                spin_loop();
            }
        }
    }
}

/// Lets what `who` waits for know its level, if that ranks.
fn rank_anew(vp: &'static Vp, who: &'static Record) -> Option<&'static Record> {
    // Elsewhere its home does it, which is told as well.
    if !ptr::eq(who.home(), vp) || who.state.get() != State::Parked {
        return None;
    }
    // SAFETY: null, or in the frame of who is parked here, and so does not leave it before the caller lets others run.
    let ranked = unsafe { who.inheritance.ranked.get().as_ref() }?;
    ranked.by.rank_anew(who, vp)
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

    /// Releases the inheritance lock, which [`Source::try_pass_on`] was called with.
    pub(crate) fn release_inheritance(&self) {
        self.inheritance.lock.release();
    }
}

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
    pub(crate) fn begin(&self, vp: &'static Vp, me: &'static Record, wait: &Wait<'_>) {
        self.gives.set(true);
        me.begin_wait(wait);
        propagate(vp, me);
    }

    /// The wait is over, perhaps because `me` was killed.
    #[inline]
    pub(crate) fn end(&self, vp: &'static Vp, me: &'static Record) {
        if self.gives.get() {
            self.take_back(vp, me);
        }
    }

    #[cold]
    fn take_back(&self, vp: &'static Vp, me: &'static Record) {
        me.end_wait();
        if let Some(lowered) = self.give(0, vp) {
            propagate(vp, lowered);
        }
    }

    /// Gives `level` to who is joined; returns it where that changes its own.
    fn give(&self, level: u8, vp: &'static Vp) -> Option<&'static Record> {
        let Self { joined, .. } = *self;
        let changed = joined.inheritance.change(joined, |given| given.joiner.set(level));
        changed.then(|| announce(joined, vp))?;
        Some(joined)
    }
}

impl Source for Join {
    fn try_pass_on(&self, who: &'static Record, vp: &'static Vp) -> PassedOn {
        let Self { joined, .. } = *self;
        let inheritance = &joined.inheritance;
        // Who joins frees the slot after it has cleared its wait, for which it needs the lock that we hold.
        let changed = inheritance.lock.try_acquire().then(|| {
            let level = who.effective_level();
            let changed = inheritance.change_locked(joined, |given| given.joiner.set(level));
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
    fn rank_anew(&self, who: &'static Record, vp: &'static Vp) -> Option<&'static Record> {
        self.gives.set(true);
        self.give(who.effective_level(), vp)
    }
}

#[cfg(test)]
mod tests;
