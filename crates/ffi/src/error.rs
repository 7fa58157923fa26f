//! Error numbers, by which C learns of errors.

use core::ffi::c_int;
use std::io::{Error, ErrorKind};

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
