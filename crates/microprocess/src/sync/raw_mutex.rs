//! The lock beneath [`Mutex`](super::Mutex): who holds it, who waits.
#![expect(unsafe_code, reason = "the deadlock report looks at mutexes by their address")]

use kyocho_sys::prim::atomic::Ordering;

use super::{
    wait::{Outcome, Waiter, end_wait, wait},
    wait_queue::WaitQueue,
};
use crate::{
    guarded::{Deadline, Guard, Guarded},
    record::{Kind, MicroprocessRef, Reason},
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
}

impl Default for RawMutex {
    fn default() -> Self {
        Self::new()
    }
}

impl RawMutex {
    pub(super) const fn new() -> Self {
        Self { state: Guarded::new(State { held: false, holder: None, waiters: WaitQueue::new() }) }
    }

    #[inline]
    pub(super) fn lock(&self) {
        self.lock_until(None);
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
        state.held = true;
        state.holder = state.caller();
        true
    }

    /// Waits for the lock until `deadline`, for ever without one; tells whether it was got.
    #[inline]
    pub(super) fn lock_until(&self, deadline: Option<Deadline>) -> bool {
        end_wait(self.wait_in(self.state.enter_at_point(), deadline), deadline)
    }

    #[inline(always)]
    fn wait_in(&self, mut state: Guard<'_, State>, deadline: Option<Deadline>) -> Outcome {
        if !state.held {
            state.held = true;
            state.holder = state.caller();
            return Outcome::Granted;
        }
        let me = state.microprocess();
        me.0.held_by.store(state.holder.map_or(0, MicroprocessRef::id), Ordering::Relaxed);
        let waiter = Waiter::new(me, 0);
        let reason =
            Reason { kind: Kind::Mutex, object: core::ptr::from_ref(self).expose_provenance() };
        wait(&self.state, state, |state| &mut state.waiters, &waiter, deadline, reason)
    }

    /// Hands the lock to the first waiter, or leaves it free. The caller holds it.
    #[inline]
    pub(super) fn unlock(&self) {
        let mut state = self.state.enter();
        debug_assert!(state.held, "only a held lock is released");
        match state.waiters.pop() {
            None => state.held = false,
            Some(first) => {
                state.holder = Some(first.who());
                first.wake(state.vp(), Outcome::Granted);
            }
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
