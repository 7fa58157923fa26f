//! The running time of steps, and the priority of their thread.

use super::Runner;
use crate::kernel::session::thread::LispThread;
use kyocho_microprocess::{Microprocess, Priority, Step};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use std::sync::Arc;

/// Sets the priority of the running thread. Returns whether it changed.
fn changes_priority(priority: Priority) -> bool {
    let me = Microprocess::current();
    let changes = me.priority() != priority;
    if changes {
        me.set_priority(priority);
    }
    changes
}

impl Runner {
    /// Runs a step and measures its time, without raw kernel calls.
    pub(super) fn step_measured(&mut self, thread: &Arc<LispThread>, begin_ns: u64) -> (Step, u64) {
        let notes = &thread.session.notes;
        thread.woken.store(false, Ordering::Release);
        let outside_ns = thread.outside_ns.load(Ordering::Relaxed);
        let step = self.step_now(thread);
        let outside_ns = thread.outside_ns.load(Ordering::Relaxed) - outside_ns;
        let ran_ns = (monotonic_ns() - begin_ns).saturating_sub(outside_ns);
        thread.ran_ns.fetch_add(ran_ns, Ordering::Relaxed);
        if notes.are_wanted() {
            notes.note(thread);
        }
        (step, ran_ns)
    }

    /// A step of a thread that shares the processors with no other user. While a policy schedules
    /// threads, it ends at the next tick.
    pub(super) fn step_unshared(&mut self, thread: &Arc<LispThread>) -> Step {
        if !self.kernel.calls.are_measured() {
            return self.step_now(thread);
        }
        if thread.session.notes.are_wanted() && !thread.is_policy() {
            self.kernel.shares.begin_step();
        }
        self.step_measured(thread, monotonic_ns()).0
    }

    /// A step that is charged to the thread's account.
    pub(super) fn step_within_share(&mut self, thread: &Arc<LispThread>) -> Step {
        let begin_ns = monotonic_ns();
        let floor_ns = self.kernel.shares.begin_step();
        let account = &thread.session.account;
        let base = thread.base_priority();
        // A policy keeps its priority whatever its account has used, because it decides for all
        // users.
        let priority = match thread.is_policy() {
            true => base,
            false => account.priority_within_share(base, floor_ns),
        };
        if changes_priority(priority) {
            return Step::Yield;
        }
        let (step, ran_ns) = self.step_measured(thread, begin_ns);
        account.run(ran_ns, floor_ns);
        if matches!(step, Step::Park | Step::ParkUntil(_)) {
            // When the thread is woken, its account may no longer be over its share. So the thread
            // is queued at its full priority, and its next step decides anew.
            changes_priority(thread.base_priority());
        }
        step
    }
}
