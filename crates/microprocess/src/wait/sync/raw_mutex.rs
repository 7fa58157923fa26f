//! The lock beneath [`Mutex`](super::Mutex): who holds it, who waits.
//!
//! Who unlocks hands the lock to the first waiter if that one is more urgent, or has been passed over for [`PATIENCE_NS`]. Otherwise the lock is
//! free, and the waiter, woken, competes for it:
//!
//! ```text
//!   unlock ──┬─ first waiter more urgent, or out of patience ──► it holds the lock
//!            └─ else: free; it is taken out and woken ──► takes it, or, passed over, stands in the queue again
//! ```
//! If every unlock handed over, one holder that stopped would start a *convoy*: everybody who came meanwhile waits, and ever after each lock is
//! somebody else's by the time its last holder wants it again, at a switch a lock. To hand over to whoever was passed over once is not enough
//! to break one up: who gets the lock so does not run yet, and meanwhile others, woken to take it, are passed over in their turn. Time is: a
//! convoy serves everybody within microseconds, so nobody in it runs out of patience. Source of the bound: Go's `sync.Mutex`.
#![expect(unsafe_code, reason = "the deadlock report looks at mutexes by their address")]

use kyocho_sys::prim::{atomic::Ordering, clock::monotonic_ns};

use super::{
    owned::{Owned, wait_for_owner},
    wait::{Claimed, Outcome, Waiter, end_wait},
    wait_queue::WaitQueue,
};
use crate::processor::foreign_locks;
use crate::processor::inherit::Donation;
use crate::processor::record::{Kind, MicroprocessRef, Reason, Record};
use crate::processor::vp::Masked;
use crate::schedule::guarded::{Deadline, Guard, Guarded};

/// A lock without data.
#[derive(Debug)]
pub(super) struct RawMutex {
    state: Guarded<State>,
}

#[derive(Debug)]
struct State {
    /// **Invariant:** while it is clear and somebody waits, somebody was woken to take the lock and has not looked yet.
    held: bool,
    /// Who holds it, for reports; `None` also for a kernel thread of no runtime.
    holder: Option<MicroprocessRef>,
    waiters: WaitQueue,
    /// What the first waiter gives the holder.
    donation: Donation,
}

impl State {
    /// Gives the lock, which is free and nobody waits for, to `caller`.
    #[inline(always)]
    fn take(&mut self, caller: Option<MicroprocessRef>) {
        self.held = true;
        self.holder = caller;
        match caller {
            Some(caller) => caller.holds_one_more(),
            None => foreign_locks::holds_one_more(),
        }
    }

    /// The same; somebody may wait.
    fn take_before_others(&mut self, caller: Option<MicroprocessRef>, vp: Masked<'_>) {
        self.take(caller);
        if !self.waiters.is_empty() {
            // Who gets the lock waits for nothing: the chain ends here.
            let _ends_here = self.settle(vp);
        }
    }

    /// Whether the first waiter gets the lock, whoever else is faster, when `caller` unlocks.
    fn is_owed(&self, caller: Option<MicroprocessRef>) -> bool {
        self.waiters.first().is_some_and(|first| {
            // What the caller inherits, it has of this lock's waiters perhaps.
            let more_urgent = |caller: MicroprocessRef| first.priority() > caller.0.asked_level();
            first.token() == OUT_OF_PATIENCE || caller.is_none_or(more_urgent)
        })
    }
}

/// Tokens of waiters.
const PATIENT: u32 = 0;
const OUT_OF_PATIENCE: u32 = 1;

/// How long its equals may pass a waiter over: many switches, and less than a time slice.
pub(super) const PATIENCE_NS: u64 = 1_000_000;

/// `caller` gives a lock up.
#[inline(always)]
fn count_less(caller: Option<MicroprocessRef>) {
    if let Some(caller) = caller {
        caller.holds_one_less();
    }
}

impl Owned for State {
    fn waiters(&mut self) -> &mut WaitQueue {
        &mut self.waiters
    }

    fn settle(&mut self, vp: Masked<'_>) -> Option<&'static Record> {
        let first = self.waiters.first().map(Waiter::priority);
        self.donation.settle(self.holder, first, vp)
    }
}

impl Default for RawMutex {
    fn default() -> Self {
        Self::new()
    }
}

impl RawMutex {
    pub(super) const fn new() -> Self {
        let (waiters, donation) = (WaitQueue::new(), Donation::new());
        Self { state: Guarded::new(State { held: false, holder: None, waiters, donation }) }
    }

    #[inline]
    pub(super) fn lock(&self) {
        if !self.lock_quickly() {
            self.lock_until(None);
        }
    }

    /// Takes the lock if nobody holds it and nothing else is to be heeded.
    #[inline(always)]
    fn lock_quickly(&self) -> bool {
        let caller = |vp: Masked<'_>| vp.current.get().map(MicroprocessRef);
        let take = |state: &mut State, vp: Masked<'_>| {
            (!state.held && state.waiters.is_empty()).then(|| state.take(caller(vp)))
        };
        self.state.quickly(take).is_some()
    }

    /// Takes the lock again inside a wait that released it: not a kill point, whatever happens the lock is held then.
    pub(super) fn relock(&self) {
        while self.wait_in(self.state.enter(), None) != Outcome::Granted {}
    }

    /// Takes the lock if nobody holds it.
    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        let mut state = self.state.enter_at_point();
        if state.held {
            return false;
        }
        let (caller, vp) = (state.caller(), state.vp());
        state.take_before_others(caller, vp);
        true
    }

    /// Waits for the lock until `deadline`, for ever without one; tells whether it was got.
    pub(super) fn lock_until(&self, deadline: Option<Deadline>) -> bool {
        end_wait(self.wait_in(self.state.enter_at_point(), deadline), deadline)
    }

    fn wait_in<'a>(&'a self, mut state: Guard<'a, State>, deadline: Option<Deadline>) -> Outcome {
        let (mut token, mut passed_over_ns) = (PATIENT, None);
        loop {
            if !state.held {
                let (caller, vp) = (state.caller(), state.vp());
                state.take_before_others(caller, vp);
                return Outcome::Granted;
            }
            let me = state.microprocess();
            let holder = state.holder.map_or(0, MicroprocessRef::id);
            me.0.held_by.store(holder, Ordering::Relaxed);
            let reason =
                Reason { kind: Kind::Mutex, object: core::ptr::from_ref(self).expose_provenance() };
            let outcome = wait_for_owner(&self.state, state, token, deadline, reason);
            if outcome != Outcome::Granted {
                return outcome;
            }
            // Not a kill point: if the lock is free, others may wait for whoever was woken to take it.
            state = self.state.enter();
            if state.holder == Some(me) {
                // Handed over, perhaps from another virtual processor.
                me.holds_one_more();
                return Outcome::Granted;
            }
            let now_ns = monotonic_ns();
            if now_ns - *passed_over_ns.get_or_insert(now_ns) >= PATIENCE_NS {
                token = OUT_OF_PATIENCE;
            }
        }
    }

    /// Hands the lock to the first waiter, or leaves it free. The caller holds it.
    #[inline]
    pub(super) fn unlock(&self) {
        if !self.unlock_quickly() {
            self.unlock_to_waiter();
        }
    }

    /// Leaves the lock free if nobody waits for it and nothing else is to be heeded.
    #[inline(always)]
    fn unlock_quickly(&self) -> bool {
        let free = |state: &mut State, vp: Masked<'_>| {
            state.waiters.is_empty().then(|| {
                state.held = false;
                count_less(vp.current.get().map(MicroprocessRef));
            })
        };
        self.state.quickly(free).is_some()
    }

    fn unlock_to_waiter(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.held, "only a held lock is released");
        let (caller, vp) = (state.caller(), state.vp());
        count_less(caller);
        let is_owed = state.is_owed(caller);
        let first = state.waiters.pop();
        let heir = first.as_ref().map(Claimed::who);
        if let Some(heir) = heir {
            heir.0.end_wait();
        }
        state.holder = heir.filter(|_| is_owed);
        state.held = state.holder.is_some();
        // Neither who leaves nor who gets the lock waits for anything: the chain ends here.
        let _ends_here = state.settle(vp);
        if let Some(first) = first {
            first.wake(vp, Outcome::Granted);
        }
        drop(state);
        if caller.is_none() {
            foreign_locks::holds_one_less();
        }
    }
}

/// The id of who holds the mutex a parked microprocess waits for; `None` for other reasons.
pub(crate) fn holder_of(reason: Reason) -> Option<u64> {
    if reason.kind != Kind::Mutex {
        return None;
    }
    let mutex = core::ptr::with_exposed_provenance::<RawMutex>(reason.object);
    // SAFETY: somebody waits for the mutex at this address, so it is alive.
    let state = unsafe { &(*mutex).state }.enter();
    state.holder.map(MicroprocessRef::id)
}
