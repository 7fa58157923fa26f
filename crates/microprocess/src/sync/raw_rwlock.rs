//! The lock beneath [`RwLock`](super::RwLock): who is inside, who waits.

use super::{
    owned::{Owned, wait_for_owner},
    wait::{Outcome, Waiter, end_wait},
    wait_queue::WaitQueue,
};
use crate::{
    guarded::{Deadline, Guarded},
    inherit::Donation,
    record::{Kind, MicroprocessRef, Reason, Record},
    vp::Vp,
};

/// What a microprocess wants to do inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Access {
    fn token(self) -> u32 {
        u32::from(self == Self::Write)
    }

    fn of(waiter: &Waiter) -> Self {
        if waiter.token() == Self::Write.token() { Self::Write } else { Self::Read }
    }
}

/// A read-write lock without data.
#[derive(Debug)]
pub(super) struct RawRwLock {
    state: Guarded<State>,
}

#[derive(Debug)]
struct State {
    readers: usize,
    writer: bool,
    /// Who is inside for writing; also `None` for a kernel thread of no runtime.
    owner: Option<MicroprocessRef>,
    /// **Invariant:** the first waiter cannot be let in as things stand.
    waiters: WaitQueue,
    /// What the first waiter gives a writer inside. Readers get nothing: they are not known one by one.
    donation: Donation,
}

impl Owned for State {
    fn waiters(&mut self) -> &mut WaitQueue {
        &mut self.waiters
    }

    fn settle(&mut self, vp: &'static Vp) -> Option<&'static Record> {
        let first = self.waiters.first().map(Waiter::priority);
        self.donation.settle(self.owner, first, vp)
    }
}

impl State {
    /// Whether nobody inside is in the way of `access`.
    fn compatible(&self, access: Access) -> bool {
        !self.writer && (access == Access::Read || self.readers == 0)
    }

    fn enter(&mut self, access: Access, who: Option<MicroprocessRef>) {
        match access {
            Access::Read => self.readers += 1,
            Access::Write => (self.writer, self.owner) = (true, who),
        }
    }

    /// Whether a newcomer of `priority` may go in: nobody of its priority or above waits.
    fn admits(&self, access: Access, priority: u8) -> bool {
        self.compatible(access)
            && self.waiters.first().is_none_or(|first| first.priority() < priority)
    }

    /// Lets the first waiters in, as many as fit together.
    fn admit_waiters(&mut self, vp: &'static Vp) {
        while let Some(access) = self.waiters.first().map(Access::of)
            && self.compatible(access)
            && let Some(first) = self.waiters.pop()
        {
            first.who().0.end_wait();
            self.enter(access, Some(first.who()));
            first.wake(vp, Outcome::Granted);
        }
        // Who is let in waits for nothing: the chain ends here.
        let _ends_here = self.settle(vp);
    }

    /// The same, where there may be waiters.
    fn admit_some(&mut self, vp: &'static Vp) {
        if !self.waiters.is_empty() {
            self.admit_waiters(vp);
        }
    }
}

impl Default for RawRwLock {
    fn default() -> Self {
        Self::new()
    }
}

impl RawRwLock {
    pub(super) const fn new() -> Self {
        let (waiters, donation) = (WaitQueue::new(), Donation::new());
        let state = State { readers: 0, writer: false, owner: None, waiters, donation };
        Self { state: Guarded::new(state) }
    }

    /// Goes in if that needs no waiting.
    pub(super) fn try_lock(&self, access: Access) -> bool {
        let mut state = self.state.enter_at_point();
        let admitted = state.waiters.is_empty() && state.compatible(access);
        if admitted {
            let caller = state.caller();
            state.enter(access, caller);
        }
        admitted
    }

    /// Goes in, waiting until `deadline`, for ever without one; tells whether it did.
    pub(super) fn lock(&self, access: Access, deadline: Option<Deadline>) -> bool {
        self.try_lock(access) || self.lock_slow(access, deadline)
    }

    #[cold]
    fn lock_slow(&self, access: Access, deadline: Option<Deadline>) -> bool {
        let mut state = self.state.enter_at_point();
        let me = state.microprocess();
        if state.admits(access, me.0.effective_level()) {
            state.enter(access, Some(me));
            return true;
        }
        let reason = Reason { kind: Kind::RwLock, object: core::ptr::from_ref(self).addr() };
        let outcome = wait_for_owner(&self.state, state, access.token(), deadline, reason);
        if outcome != Outcome::Granted {
            // A writer that gives up may have been all that held back the readers behind it.
            let mut state = self.state.enter();
            let vp = state.vp();
            state.admit_waiters(vp);
        }
        end_wait(outcome, deadline)
    }

    /// Leaves; the caller is inside for reading.
    pub(super) fn unlock_read(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.readers > 0, "only a reader leaves as one");
        state.readers -= 1;
        let vp = state.vp();
        state.admit_some(vp);
    }

    /// Leaves; the caller is inside for writing.
    pub(super) fn unlock_write(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.writer, "only the writer leaves as one");
        (state.writer, state.owner) = (false, None);
        let vp = state.vp();
        state.admit_some(vp);
    }
}
