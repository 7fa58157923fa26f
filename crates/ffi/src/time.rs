//! Deadlines as pthreads take them: times of the calendar clock.
#![expect(unsafe_code, reason = "reads times of C")]

use core::time::Duration;
use std::time::UNIX_EPOCH;

use kyocho_sys::prim::clock::SystemTime;

use crate::error::{Code, Result};

const NS_PER_S: i64 = 1_000_000_000;

/// The time until `deadline`; zero once it has passed.
///
/// # Safety
/// `deadline` is null or points to a time.
pub(crate) unsafe fn until(deadline: *const libc::timespec) -> Result<Duration> {
    // SAFETY: guaranteed by the caller.
    let deadline = unsafe { deadline.as_ref() }.ok_or(Code::INVALID)?;
    if !(0..NS_PER_S).contains(&deadline.tv_nsec) {
        return Err(Code::INVALID);
    }
    let Ok(seconds) = u64::try_from(deadline.tv_sec) else { return Ok(Duration::ZERO) };
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Duration::new(seconds, deadline.tv_nsec as u32).saturating_sub(since_epoch))
}
