//! Condition variables.

use core::time::Duration;
use std::sync::LockResult;

use super::{
    mutex::MutexGuard,
    poison::Poison,
    wait::{Outcome, Waiter, end_wait, wait_after},
    wait_queue::WaitQueue,
};
use crate::processor::record::{Kind, Reason};
use crate::schedule::guarded::{Deadline, Guarded};

/// Waits for a condition on data under a [`Mutex`](super::Mutex), as [`std::sync::Condvar`].
///
/// Waiters are notified highest priority first, FIFO among equals. There are no spurious wake-ups.
/// But the condition may have changed again before the lock is held, so check it in a loop or use
/// [`wait_while`](Self::wait_while).
///
/// ```
/// use kyocho_microprocess::{Condvar, Mutex, run, scope};
///
/// run(|| {
///     let (ready, changed) = (Mutex::new(false), Condvar::new());
///     scope(|scope| {
///         scope.spawn(|| {
///             *ready.lock().unwrap() = true;
///             changed.notify_one();
///         });
///         let guard = changed.wait_while(ready.lock().unwrap(), |ready| !*ready).unwrap();
///         assert!(*guard);
///     });
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Condvar {
    waiters: Guarded<WaitQueue>,
}

/// Whether a wait ended because its time limit passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time limit passed before a notification came.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// A condition variable without waiters.
    pub const fn new() -> Self {
        Self { waiters: Guarded::new(WaitQueue::new()) }
    }

    /// Unlocks the mutex, waits for a notification and locks again. Unlocking and beginning to wait
    /// are one step.
    ///
    /// # Errors
    /// The guard inside a [`PoisonError`](super::PoisonError) if a holder of the mutex panicked.
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.wait_until(&mut guard, None);
        Poison::wrap(guard.mutex().is_poisoned(), guard)
    }

    /// Waits as long as `condition` holds.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits for a notification for at most `timeout`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let timed_out = !self.wait_until(&mut guard, Deadline::after(timeout));
        let poisoned = guard.mutex().is_poisoned();
        Poison::wrap(poisoned, (guard, WaitTimeoutResult(timed_out)))
    }

    /// Waits as long as `condition` holds, for at most `timeout` in all.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let deadline = Deadline::after(timeout);
        let mut in_time = true;
        while in_time && condition(&mut *guard) {
            in_time = self.wait_until(&mut guard, deadline);
        }
        let timed_out = !in_time && condition(&mut *guard);
        let poisoned = guard.mutex().is_poisoned();
        Poison::wrap(poisoned, (guard, WaitTimeoutResult(timed_out)))
    }

    /// Wakes the first waiter, if there is one.
    pub fn notify_one(&self) {
        let mut waiters = self.waiters.enter();
        if let Some(first) = waiters.pop() {
            first.wake(waiters.vp(), Outcome::Granted);
        }
    }

    /// Wakes all waiters. Events stay masked meanwhile, for a few nanoseconds for each waiter.
    pub fn notify_all(&self) {
        let mut waiters = self.waiters.enter();
        while let Some(waiter) = waiters.pop() {
            waiter.wake(waiters.vp(), Outcome::Granted);
        }
    }

    /// Waits with the mutex released; returns whether a notification came.
    fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Option<Deadline>) -> bool {
        let reason = Reason { kind: Kind::Condvar, object: core::ptr::from_ref(self).addr() };
        let mutex = guard.raw();
        // Lock order: the condition variable's guard, then the mutex'. So a notifier that holds the
        // mutex finds one of two cases: the waiter is still in its critical section, or it is
        // queued.
        let waiters = self.waiters.enter_at_point();
        let waiter = Waiter::new(waiters.microprocess(), 0);
        let outcome = wait_after(
            &self.waiters,
            waiters,
            |waiters| waiters,
            &waiter,
            deadline,
            reason,
            || mutex.unlock(),
        );
        mutex.relock();
        end_wait(outcome, deadline)
    }
}
