//! Waiting for a lock that has an owner, who inherits the priority of who waits: see [`inherit`](crate::processor::inherit).
#![expect(unsafe_code, reason = "queues a node on the waiter's stack")]

use super::{
    wait::{Outcome, Waiter},
    wait_queue::WaitQueue,
};
use crate::processor::inherit::{PassedOn, Source, Wait, propagate};
use crate::processor::record::{Reason, Record};
use crate::processor::vp::Masked;
use crate::schedule::guarded::{Deadline, Guard, Guarded, WakeCause};
use crate::schedule::mask;

/// The guarded state of such a lock.
pub(super) trait Owned {
    /// Who waits.
    fn waiters(&mut self) -> &mut WaitQueue;

    /// Gives the owner what the first waiter has; returns who has another level because of it.
    #[must_use]
    fn settle(&mut self, vp: Masked<'_>) -> Option<&'static Record>;
}

/// One wait for such a lock.
struct OwnedWait<'a, S> {
    object: &'a Guarded<S>,
    waiter: &'a Waiter,
}

impl<S: Owned> Source for OwnedWait<'_, S> {
    fn try_pass_on(&self, who: &'static Record, vp: Masked<'_>) -> PassedOn {
        let entered = self.object.try_enter();
        // Inside the guard the wait cannot end, so neither its frame nor the lock goes away.
        who.release_inheritance();
        let Some(mut state) = entered else { return PassedOn::Busy };
        let level = who.effective_level();
        if self.waiter.priority() == level {
            return PassedOn::To(None);
        }
        state.waiters().rank_anew(self.waiter, level);
        PassedOn::To(state.settle(vp))
    }
}

/// Waits in the queue of `object` until its owner hands it over or `deadline` passes.
#[cold]
pub(super) fn wait_for_owner<S: Owned>(
    object: &Guarded<S>,
    mut guard: Guard<'_, S>,
    token: u32,
    deadline: Option<Deadline>,
    reason: Reason,
) -> Outcome {
    let vp = guard.vp();
    let me = guard.microprocess();
    let waiter = Waiter::new(me, token);
    waiter.set_priority(me.0.effective_level());
    let source = OwnedWait { object, waiter: &waiter };
    let wait = Wait { source: &source };
    // SAFETY: `waiter` is fresh, and borrowed until this function returns; by then it is in no queue.
    unsafe { guard.waiters().push(&waiter) };
    me.0.begin_wait(&wait);
    let raised = guard.settle(vp);
    let cause = guard.park_after(reason, deadline, |vp| {
        if let Some(owner) = raised {
            propagate(vp, owner);
        }
    });
    if cause == WakeCause::TimedOut {
        give_up(object, &waiter);
    }
    waiter.outcome()
}

/// Takes `waiter`, whose time is over or who was killed, out of the queue, and its priority from the owner.
fn give_up<S: Owned>(object: &Guarded<S>, waiter: &Waiter) {
    let section = mask();
    let mut state = object.enter();
    state.waiters().remove(waiter);
    waiter.who().0.end_wait();
    let lowered = state.settle(section.masked());
    drop(state);
    if let Some(owner) = lowered {
        propagate(section.masked(), owner);
    }
    section.leave();
}
