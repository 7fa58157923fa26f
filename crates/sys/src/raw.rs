//! Raw system calls, with their result split into success and failure.
#![expect(unsafe_code, reason = "raw system calls")]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::error::Errno;

/// Largest error number that the kernel returns (`MAX_ERRNO`).
const ERRNO_MAX: usize = 4095;

/// Calls the kernel with up to six arguments.
///
/// # Safety
/// The arguments are valid for the call.
#[inline]
pub(crate) unsafe fn call<const N: usize>(
    number: libc::c_long,
    arguments: [usize; N],
) -> Result<usize, Errno> {
    const { assert!(N <= 6, "a system call takes six arguments at most") };
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: the caller guarantees the arguments.
    let answer = unsafe { kyocho_arch::system_call(number as usize, all) };
    let negated = (answer as usize).wrapping_neg();
    if (1..=ERRNO_MAX).contains(&negated) {
        Err(Errno::new(negated as i32))
    } else {
        Ok(answer as usize)
    }
}

/// Ownership of a descriptor that a call has returned.
///
/// # Safety
/// The descriptor is open, and nothing else owns it.
pub(crate) unsafe fn owned(descriptor: usize) -> OwnedFd {
    // SAFETY: guaranteed by the caller.
    unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) }
}
