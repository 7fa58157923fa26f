//! The lock beneath [`RwLock`](super::RwLock): who is inside, who waits.
//!
//! Who leaves the lock empty behind lets the first waiters in, if those read. A writer it lets in if that one is more urgent, or has been passed
//! over for [`PATIENCE_NS`]; otherwise the writer is woken, and competes with whoever comes. As for a mutex, and for the same reason:
//! see [`raw_mutex`](super::raw_mutex).
//!
//! ```text
//!   last out ──┬─ first waiter reads, or is more urgent, or out of patience ──► inside, with those behind it that fit
//!              └─ else: empty; it is taken out and woken ──► goes in, or, passed over, stands in the queue again
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

/// What a microprocess wants to do inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Bits of tokens of waiters.
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
    /// **Invariant:** the first waiter cannot be let in as things stand; or nobody is inside, and a writer was woken to go in and has not
    /// looked yet.
    waiters: WaitQueue,
    /// What the first waiter gives a writer inside. Readers get nothing: they are not known one by one.
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

    /// The same, where somebody may wait: who fits goes in as well, or gives what is due.
    fn enter_before_others(
        &mut self,
        access: Access,
        who: Option<MicroprocessRef>,
        vp: Masked<'_>,
    ) {
        self.enter(access, who);
        if !self.waiters.is_empty() {
            self.admit_waiters(vp);
        }
    }

    /// Whether a newcomer of `priority` may go in: nobody is inside, or those who are do not mind and nobody of its priority or above waits.
    fn admits(&self, access: Access, priority: u8) -> bool {
        let goes_first = || self.waiters.first().is_none_or(|first| first.priority() < priority);
        self.is_empty() || self.compatible(access) && goes_first()
    }

    /// Whether the first waiter goes in, whoever else is faster, when `caller` leaves the lock empty.
    fn is_owed(&self, caller: Option<MicroprocessRef>) -> bool {
        self.waiters.first().is_some_and(|first| {
            // What the caller inherits, it has of this lock's waiters perhaps.
            let more_urgent = |caller: MicroprocessRef| first.priority() > caller.0.asked_level();
            first.token() & OUT_OF_PATIENCE != 0 || caller.is_none_or(more_urgent)
        })
    }

    /// Lets the first waiters in, as many as fit together.
    fn admit_waiters(&mut self, vp: Masked<'_>) {
        while let Some(access) = self.waiters.first().map(Access::of)
            && self.compatible(access)
            && let Some(first) = self.pop()
        {
            self.enter(access, Some(first.who()));
            first.wake(vp, Outcome::Granted);
        }
        // Who is let in waits for nothing: the chain ends here.
        let _ends_here = self.settle(vp);
    }

    fn pop(&mut self) -> Option<Claimed> {
        self.waiters.pop().inspect(|first| first.who().0.end_wait())
    }

    /// Does what waiters are due after `caller` has left.
    fn give_way(&mut self, caller: Option<MicroprocessRef>, vp: Masked<'_>) {
        let Some(access) = self.waiters.first().map(Access::of) else { return };
        if access == Access::Read || !self.is_empty() || self.is_owed(caller) {
            self.admit_waiters(vp);
        } else if let Some(writer) = self.pop() {
            // Nobody is inside who could be given anything.
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

    /// Goes in if that needs no waiting.
    pub(super) fn try_lock(&self, access: Access) -> bool {
        let mut state = self.state.enter_at_point();
        let (caller, vp) = (state.caller(), state.vp());
        let admitted = state.admits(access, 0);
        if admitted {
            if caller.is_none() {
                foreign_locks::holds_one_more();
            }
            state.enter_before_others(access, caller, vp);
        }
        admitted
    }

    /// Goes in, waiting until `deadline`, for ever without one; tells whether it did.
    pub(super) fn lock(&self, access: Access, deadline: Option<Deadline>) -> bool {
        self.try_lock(access) || self.lock_slow(access, deadline)
    }

    #[cold]
    fn lock_slow(&self, access: Access, deadline: Option<Deadline>) -> bool {
        let state = self.state.enter_at_point();
        let me = state.microprocess();
        let outcome = self.wait_in(state, me, access, deadline);
        if outcome != Outcome::Granted {
            // A writer that gives up may have been all that held back the readers behind it.
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
            // Not a kill point: if the lock is empty, others may wait for whoever was woken to go in.
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

    /// Leaves; the caller is inside for reading.
    pub(super) fn unlock_read(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.readers > 0, "only a reader leaves as one");
        state.readers -= 1;
        self.leave(state);
    }

    /// Leaves; the caller is inside for writing.
    pub(super) fn unlock_write(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.writer, "only the writer leaves as one");
        (state.writer, state.owner) = (false, None);
        self.leave(state);
    }

    /// The caller, which is not inside any more, gives way.
    fn leave(&self, mut state: Guard<'_, State>) {
        let (caller, vp) = (state.caller(), state.vp());
        state.give_way(caller, vp);
        drop(state);
        if caller.is_none() {
            foreign_locks::holds_one_less();
        }
    }
}
