//! Sleeping in the kernel with a raw call, for code that must be observed to block.
#![expect(unsafe_code, reason = "a system call on a structure")]

use crate::error::Errno;
use crate::raw::call;

/// Sleeps until this time on the monotonic clock, in nanoseconds.
///
/// # Errors
/// `INTR`: a signal came first.
pub fn until(deadline_ns: u64) -> Result<(), Errno> {
    let time = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    let arguments =
        [libc::CLOCK_MONOTONIC as usize, libc::TIMER_ABSTIME as usize, &raw const time as usize, 0];
    // SAFETY: the kernel reads the structure during the call.
    unsafe { call(libc::SYS_clock_nanosleep, arguments) }?;
    Ok(())
}
