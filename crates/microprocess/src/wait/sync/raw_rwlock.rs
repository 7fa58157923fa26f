//! The lock beneath [`RwLock`](super::RwLock): its readers or writer, and its waiters.
//!
//! When the lock becomes empty, the first waiters enter at once if they are readers. If the first
//! waiter is a writer, it enters at once if it is more urgent than the unlocker, or has been
//! overtaken for [`PATIENCE_NS`], or if the unlocker is outside any runtime. Otherwise it is woken
//! and competes for the lock. A mutex does the same, for the same reason: see
//! [`raw_mutex`](super::raw_mutex).
//!
//! ```text
//!   last out ──┬─ first waiter reads, or is more urgent, or out of patience ──► it enters, with those behind it that fit
//!              └─ else: empty; it is dequeued and woken ──► enters, or, if overtaken, queues again
//! ```

use kyocho_sys::prim::clock::monotonic_ns;

use super::{
    owned::{Owned, wait_for_owner},
    raw_mutex::PATIENCE_NS,
    wait::{Claimed, Outcome, Waiter, end_wait},
    wait_queue::WaitQueue,
};
use crate::processor::foreign_locks;
use crate::processor::inherit::Donation;
use crate::processor::record::{Kind, MicroprocessRef, Reason, Record};
use crate::processor::vp::Masked;
use crate::schedule::guarded::{Deadline, Guard, Guarded};

/// The kind of access that a microprocess wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Bits of a waiter's token.
const WRITES: u32 = 1;
const OUT_OF_PATIENCE: u32 = 2;

impl Access {
    fn token(self) -> u32 {
        if self == Self::Write { WRITES } else { 0 }
    }

    fn of(waiter: &Waiter) -> Self {
        if waiter.token() & WRITES != 0 { Self::Write } else { Self::Read }
    }
}

/// A reader-writer lock without data.
#[derive(Debug)]
pub(super) struct RawRwLock {
    state: Guarded<State>,
}

#[derive(Debug)]
struct State {
    readers: usize,
    writer: bool,
    /// The writer that is inside. `None` also for a kernel thread outside any runtime.
    owner: Option<MicroprocessRef>,
    /// **Invariant:** either the first waiter cannot enter now; or the lock is empty, and a writer
    /// was woken to enter and has not tried yet.
    waiters: WaitQueue,
    /// The donation of the first waiter to a writer inside. Readers get none: they are not
    /// recorded.
    donation: Donation,
}

impl Owned for State {
    fn waiters(&mut self) -> &mut WaitQueue {
        &mut self.waiters
    }

    fn settle(&mut self, vp: Masked<'_>) -> Option<&'static Record> {
        let first = self.waiters.first().map(Waiter::priority);
        self.donation.settle(self.owner, first, vp)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        !self.writer && self.readers == 0
    }

    /// Whether `access` is possible beside those that are inside.
    fn compatible(&self, access: Access) -> bool {
        !self.writer && (access == Access::Read || self.readers == 0)
    }

    fn enter(&mut self, access: Access, microprocess: Option<MicroprocessRef>) {
        match access {
            Access::Read => self.readers += 1,
            Access::Write => (self.writer, self.owner) = (true, microprocess),
        }
    }

    /// The same, if there may be waiters: those that fit enter as well, or donate their level.
    fn enter_before_others(
        &mut self,
        access: Access,
        microprocess: Option<MicroprocessRef>,
        vp: Masked<'_>,
    ) {
        self.enter(access, microprocess);
        if !self.waiters.is_empty() {
            self.admit_waiters(vp);
        }
    }

    /// Whether a newcomer of `priority` may enter. Either the lock is empty; or its access fits,
    /// and no waiter has its priority or a higher one.
    fn admits(&self, access: Access, priority: u8) -> bool {
        let goes_first = || self.waiters.first().is_none_or(|first| first.priority() < priority);
        self.is_empty() || self.compatible(access) && goes_first()
    }

    /// Whether the first waiter must enter when `caller` leaves the lock empty.
    fn is_owed(&self, caller: Option<MicroprocessRef>) -> bool {
        self.waiters.first().is_some_and(|first| {
            // Compared with the caller's own priority: an inherited one may come from waiters of
            // this lock.
            let more_urgent = |caller: MicroprocessRef| first.priority() > caller.0.asked_level();
            first.token() & OUT_OF_PATIENCE != 0 || caller.is_none_or(more_urgent)
        })
    }

    /// Lets the first waiters enter, as many as fit together.
    fn admit_waiters(&mut self, vp: Masked<'_>) {
        while let Some(access) = self.waiters.first().map(Access::of)
            && self.compatible(access)
            && let Some(first) = self.pop()
        {
            self.enter(access, Some(first.microprocess()));
            first.wake(vp, Outcome::Granted);
        }
        // A waiter that enters waits for nothing, so the chain of waits ends here.
        let _ends_here = self.settle(vp);
    }

    fn pop(&mut self) -> Option<Claimed> {
        self.waiters.pop().inspect(|first| first.microprocess().0.end_wait())
    }

    /// Serves the waiters after `caller` has left.
    fn give_way(&mut self, caller: Option<MicroprocessRef>, vp: Masked<'_>) {
        let Some(access) = self.waiters.first().map(Access::of) else { return };
        if access == Access::Read || !self.is_empty() || self.is_owed(caller) {
            self.admit_waiters(vp);
        } else if let Some(writer) = self.pop() {
            // The lock is empty, so there is no owner to donate to.
            let _nobody = self.settle(vp);
            writer.wake(vp, Outcome::Granted);
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

    /// Enters if that needs no waiting.
    pub(super) fn try_lock(&self, access: Access) -> bool {
        let mut state = self.state.enter_at_point();
        let (caller, vp) = (state.caller(), state.vp());
        let admitted = state.admits(access, 0);
        if admitted {
            if caller.is_none() {
                foreign_locks::count_lock();
            }
            state.enter_before_others(access, caller, vp);
        }
        admitted
    }

    /// Enters; waits until `deadline`, or for ever if that is `None`. Returns whether it entered.
    pub(super) fn lock(&self, access: Access, deadline: Option<Deadline>) -> bool {
        self.try_lock(access) || self.lock_slow(access, deadline)
    }

    #[cold]
    fn lock_slow(&self, access: Access, deadline: Option<Deadline>) -> bool {
        let state = self.state.enter_at_point();
        let me = state.microprocess();
        let outcome = self.wait_in(state, me, access, deadline);
        if outcome != Outcome::Granted {
            // A writer that gives up may have been the only obstacle for the readers behind it.
            let mut state = self.state.enter();
            let vp = state.vp();
            state.admit_waiters(vp);
        }
        end_wait(outcome, deadline)
    }

    fn wait_in<'a>(
        &'a self,
        mut state: Guard<'a, State>,
        me: MicroprocessRef,
        access: Access,
        deadline: Option<Deadline>,
    ) -> Outcome {
        let (mut token, mut passed_over_ns) = (access.token(), None);
        let mut may_enter = state.admits(access, me.0.effective_level());
        while !may_enter {
            let reason = Reason { kind: Kind::RwLock, object: core::ptr::from_ref(self).addr() };
            let outcome = wait_for_owner(&self.state, state, token, deadline, reason);
            if outcome != Outcome::Granted || access == Access::Read {
                return outcome;
            }
            // Not a kill point: if the lock is empty, this microprocess was perhaps woken to enter,
            // and others wait for that.
            state = self.state.enter();
            if state.owner == Some(me) {
                return Outcome::Granted;
            }
            may_enter = state.is_empty();
            let now_ns = monotonic_ns();
            if now_ns - *passed_over_ns.get_or_insert(now_ns) >= PATIENCE_NS {
                token |= OUT_OF_PATIENCE;
            }
        }
        let vp = state.vp();
        state.enter_before_others(access, Some(me), vp);
        Outcome::Granted
    }

    /// Leaves; the caller is a reader inside.
    pub(super) fn unlock_read(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.readers > 0, "only a reader may unlock for reading");
        state.readers -= 1;
        self.leave(state);
    }

    /// Leaves; the caller is the writer inside.
    pub(super) fn unlock_write(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.writer, "only the writer may unlock for writing");
        (state.writer, state.owner) = (false, None);
        self.leave(state);
    }

    /// Serves the waiters; the caller is no longer inside.
    fn leave(&self, mut state: Guard<'_, State>) {
        let (caller, vp) = (state.caller(), state.vp());
        state.give_way(caller, vp);
        drop(state);
        if caller.is_none() {
            foreign_locks::uncount_lock();
        }
    }
}
