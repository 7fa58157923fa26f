//! One operation in flight, and the microprocess that waits for it.

use core::fmt;

use crate::data::deadline::Deadline;
use crate::processor::record::make_runnable_from;
use crate::processor::record::{MicroprocessRef, Reason};
use crate::schedule::guarded::{Guarded, WakeCause};

/// Lies on its waiter's stack. The kernel has its address as the operation's user data.
///
/// Whenever the waiter runs again, it reads the result under the guard. It keeps this value until
/// it has the result. So the completer no longer uses this value once the guard is free.
pub(crate) struct Pending {
    microprocess: MicroprocessRef,
    state: Guarded<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    parked: bool,
    /// As the kernel reports it: a count, or a negative error number.
    result: Option<i32>,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("microprocess", &self.microprocess).finish_non_exhaustive()
    }
}

impl Pending {
    /// An operation of the current microprocess.
    pub(super) fn new() -> Self {
        let state = State { parked: false, result: None };
        Self { microprocess: MicroprocessRef::current(), state: Guarded::new(state) }
    }

    /// Stores the result and makes the waiter runnable, if it waits.
    pub(super) fn complete(&self, result: i32) {
        let mut state = self.state.enter();
        state.result = Some(result);
        state.vp().counters.completed.bump();
        if state.parked {
            state.parked = false;
            make_runnable_from(state.vp(), self.microprocess);
        }
    }

    /// Waits for the result, until `deadline` if there is one, or until the waiter is killed.
    pub(super) fn wait(&self, deadline: Option<Deadline>, reason: Reason) -> Option<i32> {
        loop {
            let mut state = self.state.enter();
            if state.result.is_some() {
                return state.result;
            }
            state.parked = true;
            let cause = match deadline {
                None => state.park(reason),
                Some(deadline) => state.park_until(deadline, reason),
            };
            let mut state = self.state.enter();
            state.parked = false;
            if cause == WakeCause::TimedOut {
                return state.result;
            }
        }
    }
}
