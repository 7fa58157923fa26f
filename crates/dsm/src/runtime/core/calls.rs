//! Calls of the program's threads, until they return. One of the waiting threads receives messages;
//! the others sleep.

use core::time::Duration;
use std::sync::MutexGuard;

use kyocho_sys::error::Errno;
use kyocho_sys::prim::clock::Instant;

use super::{Core, EPROTO, LOOK_EVERY, State};
use crate::address::ThreadId;
use crate::interface::{Call, Event, Subject};
use crate::message::BarrierKind;
use crate::runtime::meeting::{CallResult, JointRequest, Request};
use crate::transport::Waiter;

/// Interval at which a thread that may give up is asked whether it does.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// When a thread stops waiting for a lock or a condition.
#[derive(Clone, Copy)]
pub(in crate::runtime) enum Limit<'a> {
    None,
    After(Duration),
    /// When the function returns true; it is called repeatedly.
    When(&'a dyn Fn() -> bool),
}

impl Limit<'_> {
    /// Time to wait before this is called again; zero if the thread gives up; `None` without limit.
    fn left(self, began: Instant) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::After(limit) => Some(limit.saturating_sub(began.elapsed())),
            Self::When(is_enough) => Some(if is_enough() { Duration::ZERO } else { ASK_EVERY }),
        }
    }
}

impl Core {
    /// Makes a call for a thread of the program, and waits for its return. At the `limit` an
    /// acquire is given up, and a wait on a condition ends.
    pub(in crate::runtime) fn call(
        &self,
        thread: ThreadId,
        call: Call,
        limit: Limit<'_>,
    ) -> CallResult {
        let mut state = self.until_not_full(self.lock()?, thread)?;
        if !matches!(call, Call::Fetch(_) | Call::Move(_) | Call::Signal(..)) {
            self.collect(&mut state)?;
        }
        self.step_and_wait(state, thread, call, limit)
    }

    /// Blocks a thread of the program while too many bytes wait for a peer. Messages that need no
    /// answer, such as signals, would fill the memory otherwise.
    fn until_not_full<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: ThreadId,
    ) -> Result<MutexGuard<'a, State>, Errno> {
        if !self.transport.is_full() {
            return Ok(state);
        }
        self.transport.begin_call();
        while self.transport.is_full() && state.refused.is_none() && !state.ended {
            state = self.wait(state, thread, ASK_EVERY)?;
        }
        if self.transport.end_call() {
            self.take(&mut state);
        }
        Ok(state)
    }

    pub(super) fn step_and_wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: ThreadId,
        call: Call,
        limit: Limit<'_>,
    ) -> CallResult {
        state.calls += 1;
        let number = state.calls;
        self.transport.begin_call();
        self.step(&mut state, Event::Call(thread, call));
        let (mut state, came) = self.wait_for_return(state, thread, call, number, limit)?;
        if self.transport.end_call() {
            self.take(&mut state);
        }
        came
    }

    fn wait_for_return<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: ThreadId,
        call: Call,
        number: u64,
        mut limit: Limit<'_>,
    ) -> Result<(MutexGuard<'a, State>, CallResult), Errno> {
        let began = Instant::now();
        loop {
            if let Some(errno) = state.refused {
                return Ok((state, Err(errno)));
            }
            if let Some(returned) = state.returned.remove(&thread) {
                state.statistics.waited(call, began.elapsed());
                return Ok((state, Ok(returned)));
            }
            let left = limit.left(began);
            if left.is_some_and(|left| left.is_zero()) {
                limit = Limit::None;
                self.step(&mut state, Event::TimeUp(number));
            } else {
                state = self.wait(state, thread, left.unwrap_or(LOOK_EVERY))?;
            }
        }
    }

    /// Waits for messages, at most so long, and processes them. One thread of the program receives;
    /// the others wait for it.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        thread: ThreadId,
        left: Duration,
    ) -> Result<MutexGuard<'a, State>, Errno> {
        if state.receiving.is_some() {
            // This thread does not look for messages while it sleeps.
            if self.transport.end_call() {
                self.take(&mut state);
            } else {
                state = self.sleep(state, left)?;
            }
            self.transport.begin_call();
            return Ok(state);
        }
        state.receiving = Some(thread);
        drop(state);
        self.transport.wait(Waiter::Caller, left);
        let mut state = self.lock()?;
        state.receiving = None;
        self.take(&mut state);
        Ok(state)
    }

    /// Sleeps until something changes.
    pub(super) fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        left: Duration,
    ) -> Result<MutexGuard<'a, State>, Errno> {
        state.sleeping += 1;
        let slept = self.changed.wait_timeout(state, left);
        let mut state = slept.map_err(|_| self.broken())?.0;
        state.sleeping -= 1;
        Ok(state)
    }

    /// Wakes sleeping threads. A notification costs a system call even if no thread sleeps, so the
    /// sleeping threads are counted.
    pub(super) fn wake(&self, state: &State) {
        if state.sleeping > 0 {
            self.changed.notify_all();
        }
    }

    /// Sets the number of threads that represent the node, each until it is excused.
    pub(in crate::runtime) fn expect(&self, threads: u16) {
        self.lock_to_end().meeting.expect(threads);
    }

    /// Whether any of these threads is not excused.
    pub(in crate::runtime) fn has_thread_slots(&self) -> bool {
        self.lock_to_end().meeting.is_expected()
    }

    /// One thread comes to no more barriers.
    pub(in crate::runtime) fn excuse(&self) {
        let mut state = self.lock_to_end();
        state.meeting.excuse();
        self.wake(&state);
    }

    /// Meets the other threads of this node; one of them crosses a barrier with all nodes.
    pub(in crate::runtime) fn meet(
        &self,
        wish: Request,
        cross: impl FnOnce(JointRequest) -> CallResult,
    ) -> CallResult {
        let mut state = self.lock()?;
        let round = state.meeting.arrive(wish);
        // If a thread was excused meanwhile, one that waits already has to cross.
        self.wake(&state);
        loop {
            if let Some(came) = state.meeting.came_of(round) {
                return came;
            }
            if let Some(agreed) = state.meeting.begin() {
                drop(state);
                let mut crossing = Crossing { core: self, came: Err(Errno::new(EPROTO)) };
                crossing.came = cross(agreed);
                return crossing.came;
            }
            if let Some(why) = state.node.lost(Subject::Barrier) {
                self.step(&mut state, Event::Stranded);
                return Ok(Err(why));
            }
            state = self.sleep(state, LOOK_EVERY)?;
        }
    }

    /// Crosses the last barrier.
    pub(in crate::runtime) fn cross_last(&self, thread: ThreadId) -> CallResult {
        let mut state = self.lock()?;
        state.node.next_barrier_is_last();
        self.collect(&mut state)?;
        self.step_and_wait(state, thread, Call::Barrier(BarrierKind::Ordinary), Limit::None)
    }
}

/// One thread crosses a barrier for all threads of its node. The others get the result, whatever it
/// is.
struct Crossing<'a> {
    core: &'a Core,
    came: CallResult,
}

impl Drop for Crossing<'_> {
    fn drop(&mut self) {
        let mut state = self.core.lock_to_end();
        state.meeting.end(self.came);
        if kyocho_sys::prim::thread::panicking() {
            // The other nodes wait for this one, which will not arrive.
            state.refused = Some(Errno::new(EPROTO));
            self.core.wake_all(&state);
            drop(state);
            self.core.transport.close();
        } else {
            self.core.wake(&state);
        }
    }
}

#[cfg(test)]
mod tests;
