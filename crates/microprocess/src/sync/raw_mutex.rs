//! The lock beneath [`Mutex`](super::Mutex): who holds it, who waits.
#![expect(unsafe_code, reason = "the deadlock report looks at mutexes by their address")]

use kyocho_sys::prim::atomic::Ordering;

use super::{
    owned::{Owned, wait_for_owner},
    wait::{Claimed, Outcome, Waiter, end_wait},
    wait_queue::WaitQueue,
};
use crate::{
    guarded::{Deadline, Guard, Guarded},
    inherit::Donation,
    record::{Kind, MicroprocessRef, Reason, Record},
    vp::Vp,
};

/// A lock without data.
#[derive(Debug)]
pub(super) struct RawMutex {
    state: Guarded<State>,
}

#[derive(Debug)]
struct State {
    /// **Invariant:** set while somebody waits: releasing hands over.
    held: bool,
    /// Who holds it, for reports; `None` also for a kernel thread of no runtime.
    holder: Option<MicroprocessRef>,
    waiters: WaitQueue,
    /// What the first waiter gives the holder.
    donation: Donation,
}

impl State {
    /// Gives the lock, which is free, to `caller`.
    #[inline(always)]
    fn take(&mut self, caller: Option<MicroprocessRef>) {
        self.held = true;
        self.holder = caller;
        if let Some(caller) = caller {
            caller.holds_one_more();
        }
    }
}

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

    fn settle(&mut self, vp: &'static Vp) -> Option<&'static Record> {
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
        let caller = |vp: &'static Vp| vp.current.get().map(MicroprocessRef);
        self.state.quickly(|state, vp| (!state.held).then(|| state.take(caller(vp)))).is_some()
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
        let caller = state.caller();
        state.take(caller);
        true
    }

    /// Waits for the lock until `deadline`, for ever without one; tells whether it was got.
    pub(super) fn lock_until(&self, deadline: Option<Deadline>) -> bool {
        end_wait(self.wait_in(self.state.enter_at_point(), deadline), deadline)
    }

    #[inline(always)]
    fn wait_in(&self, mut state: Guard<'_, State>, deadline: Option<Deadline>) -> Outcome {
        if !state.held {
            let caller = state.caller();
            state.take(caller);
            return Outcome::Granted;
        }
        let me = state.microprocess();
        let holder = state.holder.map_or(0, MicroprocessRef::id);
        me.0.held_by.store(holder, Ordering::Relaxed);
        let reason =
            Reason { kind: Kind::Mutex, object: core::ptr::from_ref(self).expose_provenance() };
        let outcome = wait_for_owner(&self.state, state, 0, deadline, reason);
        if outcome == Outcome::Granted {
            // Whoever handed it over may have been on another virtual processor.
            me.holds_one_more();
        }
        outcome
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
        let free = |state: &mut State, vp: &'static Vp| {
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
        count_less(state.caller());
        if state.waiters.is_empty() {
            state.held = false;
        } else {
            Self::hand_over(state);
        }
    }

    fn hand_over(mut state: Guard<'_, State>) {
        let vp = state.vp();
        let first = state.waiters.pop();
        state.held = first.is_some();
        state.holder = first.as_ref().map(Claimed::who);
        if let Some(heir) = state.holder {
            heir.0.end_wait();
        }
        // Neither who leaves nor who gets the lock waits for anything: the chain ends here.
        let _ends_here = state.settle(vp);
        if let Some(first) = first {
            first.wake(vp, Outcome::Granted);
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
