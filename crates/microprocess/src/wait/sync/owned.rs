//! Waiting for a lock with an owner, which inherits the priority of its waiters: see
//! [`inherit`](crate::processor::inherit).
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
    /// The queue of waiters.
    fn waiters(&mut self) -> &mut WaitQueue;

    /// Updates the donation of the first waiter to the owner; returns the record whose level
    /// changed because of it.
    #[must_use]
    fn settle(&mut self, vp: Masked<'_>) -> Option<&'static Record>;
}

/// A wait for such a lock.
struct OwnedWait<'a, S> {
    object: &'a Guarded<S>,
    waiter: &'a Waiter,
}

impl<S: Owned> Source for OwnedWait<'_, S> {
    fn try_pass_on(&self, record: &'static Record, vp: Masked<'_>) -> PassedOn {
        let entered = self.object.try_enter();
        // Inside the guard the wait cannot end, so its frame and the lock stay alive.
        record.release_inheritance();
        let Some(mut state) = entered else { return PassedOn::Busy };
        let level = record.effective_level();
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
    // SAFETY: `waiter` is new, and borrowed until this function returns. By then it is in no queue.
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

/// Removes `waiter`, which timed out or was killed, from the queue, and withdraws its donation from
/// the owner.
fn give_up<S: Owned>(object: &Guarded<S>, waiter: &Waiter) {
    let section = mask();
    let mut state = object.enter();
    state.waiters().remove(waiter);
    waiter.microprocess().0.end_wait();
    let lowered = state.settle(section.masked());
    drop(state);
    if let Some(owner) = lowered {
        propagate(section.masked(), owner);
    }
    section.leave();
}
