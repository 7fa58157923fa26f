//! One system call with its answer sorted into success and failure.
#![expect(unsafe_code, reason = "raw system calls")]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::error::Errno;

/// Largest error number that the kernel returns (`MAX_ERRNO`).
const ERRNO_MAX: usize = 4095;

/// Calls the kernel with up to six arguments.
///
/// # Safety
/// As the call asks of its arguments.
#[inline]
pub(crate) unsafe fn call<const N: usize>(
    number: libc::c_long,
    arguments: [usize; N],
) -> Result<usize, Errno> {
    const { assert!(N <= 6, "a system call takes six arguments at most") };
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    // SAFETY: the caller's promise.
    let answer = unsafe { kyocho_arch::system_call(number as usize, all) };
    let negated = (answer as usize).wrapping_neg();
    if (1..=ERRNO_MAX).contains(&negated) {
        Err(Errno::new(negated as i32))
    } else {
        Ok(answer as usize)
    }
}

/// A descriptor that a call has returned.
///
/// # Safety
/// It is open and nobody else will close it.
pub(crate) unsafe fn owned(descriptor: usize) -> OwnedFd {
    // SAFETY: the caller's promise.
    unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) }
}
