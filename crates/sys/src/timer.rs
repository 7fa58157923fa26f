//! Timers that send a signal to one kernel thread.
#![expect(unsafe_code, reason = "system calls on structures")]

use core::ptr;

use crate::clock::timespec;
use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;
use crate::signal::Signal;
use crate::thread_id::ThreadId;

/// The time that a timer measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerClock {
    /// Elapsed time.
    Monotonic,
    /// CPU time of the calling kernel thread.
    ThreadCpu,
}

/// A timer, stopped at first, deleted when dropped.
#[derive(Debug)]
pub struct Timer {
    id: i32,
}

impl Timer {
    /// A timer that sends `signal` to `thread` of this process.
    ///
    /// # Errors
    /// `AGAIN`: the host permits no more timers. `INVAL`: no such thread.
    pub fn new(thread: ThreadId, signal: Signal, measure: TimerClock) -> Result<Self, Errno> {
        fault::check(Call::Timer)?;
        let clock = match measure {
            TimerClock::Monotonic => libc::CLOCK_MONOTONIC,
            TimerClock::ThreadCpu => libc::CLOCK_THREAD_CPUTIME_ID,
        };
        // SAFETY: integers and a pointer, for which zero is a valid value.
        let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal.number();
        event.sigev_notify_thread_id = thread.number() as i32;
        let mut id = 0_i32;
        let arguments = [clock as usize, &raw const event as usize, &raw mut id as usize];
        // SAFETY: the kernel reads `event` and writes `id`.
        unsafe { call(libc::SYS_timer_create, arguments) }?;
        Ok(Self { id })
    }

    /// Sends the signal every `period_ns` from now on; 0 stops the timer.
    ///
    /// # Errors
    /// Injected errors.
    pub fn set_period(&self, period_ns: u64) -> Result<(), Errno> {
        fault::check(Call::Timer)?;
        let time = timespec(period_ns);
        let setting = libc::itimerspec { it_interval: time, it_value: time };
        self.arm(0, &setting)
    }

    /// Sends the signal once, when the clock reads `at_ns` (at once if it has passed); 0 stops the
    /// timer.
    ///
    /// # Errors
    /// Injected errors.
    pub fn set_once_at(&self, at_ns: u64) -> Result<(), Errno> {
        fault::check(Call::Timer)?;
        let setting = libc::itimerspec { it_interval: timespec(0), it_value: timespec(at_ns) };
        self.arm(libc::TIMER_ABSTIME, &setting)
    }

    fn arm(&self, flags: i32, setting: &libc::itimerspec) -> Result<(), Errno> {
        let setting = ptr::from_ref(setting) as usize;
        // SAFETY: the kernel reads `setting`.
        unsafe { call(libc::SYS_timer_settime, [self.id as usize, flags as usize, setting, 0]) }?;
        Ok(())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer belongs to this object.
        let answer = unsafe { call(libc::SYS_timer_delete, [self.id as usize]) };
        debug_assert!(answer.is_ok(), "timer_delete: {answer:?}");
    }
}

#[cfg(test)]
mod tests;
