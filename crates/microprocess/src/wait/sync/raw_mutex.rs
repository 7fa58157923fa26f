//! The lock beneath [`Mutex`](super::Mutex): its holder and its waiters.
//!
//! Unlocking hands the lock to the first waiter if the waiter is more urgent than the unlocker, or
//! has been overtaken for [`PATIENCE_NS`], or if the unlocker is outside any runtime. Otherwise the
//! lock becomes free. The first waiter is woken and competes for it:
//!
//! ```text
//!   unlock ──┬─ first waiter more urgent, or out of patience ──► it holds the lock
//!            └─ else: free; it is dequeued and woken ──► takes it, or, if overtaken, queues again
//! ```
//! If every unlock handed the lock over, a holder that stops once would start a *convoy*. All that
//! come meanwhile queue up. From then on, whenever a microprocess wants the lock, another one has
//! it, and each lock costs a switch.
//!
//! Handing over to each waiter that was overtaken once is not enough to dissolve a convoy. Such a
//! waiter gets the lock before it runs, and meanwhile others that were woken are overtaken in turn.
//! A time limit works: a convoy serves every waiter within microseconds, so none reaches the limit.
//! Source of the bound: Go's `sync.Mutex`.
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
    /// **Invariant:** if it is clear and there is a waiter, some microprocess was woken to take the
    /// lock and has not tried yet.
    held: bool,
    /// The holder, for reports. `None` also for a kernel thread outside any runtime.
    holder: Option<MicroprocessRef>,
    waiters: WaitQueue,
    /// The donation of the first waiter to the holder.
    donation: Donation,
}

impl State {
    /// Gives the lock, which is free and has no waiters, to `caller`.
    #[inline(always)]
    fn take(&mut self, caller: Option<MicroprocessRef>) {
        self.held = true;
        self.holder = caller;
        match caller {
            Some(caller) => caller.count_lock(),
            None => foreign_locks::count_lock(),
        }
    }

    /// The same, if there may be waiters.
    fn take_before_others(&mut self, caller: Option<MicroprocessRef>, vp: Masked<'_>) {
        self.take(caller);
        if !self.waiters.is_empty() {
            // A microprocess that gets the lock waits for nothing, so the chain of waits ends here.
            let _ends_here = self.settle(vp);
        }
    }

    /// Whether the first waiter must get the lock when `caller` unlocks it.
    fn is_owed(&self, caller: Option<MicroprocessRef>) -> bool {
        self.waiters.first().is_some_and(|first| {
            // Compared with the caller's own priority: an inherited one may come from waiters of
            // this lock.
            let more_urgent = |caller: MicroprocessRef| first.priority() > caller.0.asked_level();
            first.token() == OUT_OF_PATIENCE || caller.is_none_or(more_urgent)
        })
    }
}

/// Tokens of waiters.
const PATIENT: u32 = 0;
const OUT_OF_PATIENCE: u32 = 1;

/// How long equals may overtake a waiter: many switches, and less than a time slice.
pub(super) const PATIENCE_NS: u64 = 1_000_000;

/// Uncounts a lock that `caller` releases.
#[inline(always)]
fn count_less(caller: Option<MicroprocessRef>) {
    if let Some(caller) = caller {
        caller.uncount_lock();
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

    /// Takes the lock if it is free and the caller has no orders.
    #[inline(always)]
    fn lock_quickly(&self) -> bool {
        let caller = |vp: Masked<'_>| vp.current.get().map(MicroprocessRef);
        let take = |state: &mut State, vp: Masked<'_>| {
            (!state.held && state.waiters.is_empty()).then(|| state.take(caller(vp)))
        };
        self.state.quickly(take).is_some()
    }

    /// Takes the lock again at the end of a wait that released it. Not a kill point: the lock is
    /// always held afterwards.
    pub(super) fn relock(&self) {
        while self.wait_in(self.state.enter(), None) != Outcome::Granted {}
    }

    /// Takes the lock if it is free.
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

    /// Waits for the lock until `deadline`, or for ever if that is `None`; returns whether it was
    /// taken.
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
            // Not a kill point: if the lock is free, this microprocess was perhaps woken to take
            // it, and others wait for that.
            state = self.state.enter();
            if state.holder == Some(me) {
                // It was handed over, perhaps from another virtual processor.
                me.count_lock();
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

    /// Leaves the lock free if there are no waiters and the caller has no orders.
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
        let next_holder = first.as_ref().map(Claimed::microprocess);
        if let Some(next_holder) = next_holder {
            next_holder.0.end_wait();
        }
        state.holder = next_holder.filter(|_| is_owed);
        state.held = state.holder.is_some();
        // Neither the old nor the new holder waits for anything, so the chain of waits ends here.
        let _ends_here = state.settle(vp);
        if let Some(first) = first {
            first.wake(vp, Outcome::Granted);
        }
        drop(state);
        if caller.is_none() {
            foreign_locks::uncount_lock();
        }
    }
}

/// The id of the holder of the mutex for which a parked microprocess waits; `None` for other
/// reasons.
pub(crate) fn holder_of(reason: Reason) -> Option<u64> {
    if reason.kind != Kind::Mutex {
        return None;
    }
    let mutex = core::ptr::with_exposed_provenance::<RawMutex>(reason.object);
    // SAFETY: a microprocess waits for the mutex at this address, so it is alive.
    let state = unsafe { &(*mutex).state }.enter();
    state.holder.map(MicroprocessRef::id)
}
