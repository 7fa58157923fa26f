//! Errors as C sees them: numbers.

use core::ffi::c_int;
use core::panic::AssertUnwindSafe;
use std::io::{Error, ErrorKind};
use std::panic::catch_unwind;

use kyocho_microprocess::{Killed, Microprocess};

use crate::threads;

/// An error number of the C library, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

impl Code {
    pub(crate) const AGAIN: Self = Self(libc::EAGAIN);
    pub(crate) const BUSY: Self = Self(libc::EBUSY);
    pub(crate) const DEADLOCK: Self = Self(libc::EDEADLK);
    pub(crate) const INVALID: Self = Self(libc::EINVAL);
    pub(crate) const NO_SUCH: Self = Self(libc::ESRCH);
    pub(crate) const NOT_PERMITTED: Self = Self(libc::EPERM);
    pub(crate) const OVERFLOW: Self = Self(libc::EOVERFLOW);
    pub(crate) const CLOSED: Self = Self(libc::EPIPE);
    pub(crate) const TIMED_OUT: Self = Self(libc::ETIMEDOUT);
}

impl From<Error> for Code {
    fn from(error: Error) -> Self {
        let of_kind = || match error.kind() {
            ErrorKind::TimedOut => libc::ETIMEDOUT,
            ErrorKind::OutOfMemory => libc::ENOMEM,
            ErrorKind::WouldBlock => libc::EAGAIN,
            ErrorKind::InvalidInput => libc::EINVAL,
            _ => libc::EIO,
        };
        Self(error.raw_os_error().unwrap_or_else(of_kind))
    }
}

pub(crate) type Result<T> = core::result::Result<T, Code>;

/// Runs `body` for C: 0 or the number of its error; a panic, whose message is on standard error by then, is a number as well.
pub(crate) fn answer(body: impl FnOnce() -> Result<()>) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(Code(number)) => number,
    }
}

/// As [`answer`], for what has a count to tell: that, or the negated number.
pub(crate) fn count(body: impl FnOnce() -> Result<usize>) -> i64 {
    match caught(body) {
        // No buffer is larger than half of the address space.
        Ok(count) => count as i64,
        Err(Code(number)) => -i64::from(number),
    }
}

/// Runs `body`; a panic is an error. A caller that was killed in it has unwound this far: it ends here, since frames of C
/// cannot be unwound.
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(panic) if panic.is::<Killed>() => {
            drop(panic);
            threads::end_killed()
        }
        Err(_panic) => Err(Code(libc::ENOTRECOVERABLE)),
    }
}

/// The microprocess that calls.
pub(crate) fn caller() -> Result<Microprocess> {
    Microprocess::try_current().ok_or(Code::NOT_PERMITTED)
}
