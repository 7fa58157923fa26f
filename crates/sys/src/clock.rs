//! Clocks of the host, in nanoseconds.
#![expect(unsafe_code, reason = "calls the C library, for its vDSO")]

use crate::thread_id::ThreadId;

/// Monotonic time since a fixed moment. Takes 20-60 ns, and no system call if the host has a vDSO.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Time since 1970 by the host's calendar clock, which may be set back.
#[must_use]
pub fn wall_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

/// CPU time that the calling kernel thread has used.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that all threads of this process have used.
#[must_use]
pub fn process_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time that a kernel thread of this process has used; `None` if the thread has ended.
#[must_use]
pub fn cpu_ns_of(thread: ThreadId) -> Option<u64> {
    /// The kernel's number of a thread's clock: the inverted thread number, and which of its clocks
    /// (`CPUCLOCK_SCHED`, per thread).
    const SCHEDULED_OF_THREAD: libc::clockid_t = 6;
    let clock = !(thread.number() as libc::clockid_t) << 3 | SCHEDULED_OF_THREAD;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; for a thread that has ended the kernel reports an error.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (answer == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; the clocks named above exist on every Linux.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(answer, 0, "every Linux has this clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A duration in the kernel's form.
pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

#[cfg(test)]
mod tests;
