//! Error numbers of the kernel.

use core::fmt;

/// An error number of the host kernel, never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Interrupted by a signal handler.
    pub const INTR: Self = Self(libc::EINTR);
    /// Try again: the call would block, or a resource is temporarily exhausted.
    pub const AGAIN: Self = Self(libc::EAGAIN);
    /// No memory, or no more mappings.
    pub const NOMEM: Self = Self(libc::ENOMEM);
    /// An argument that this kernel does not understand.
    pub const INVAL: Self = Self(libc::EINVAL);
    /// An address that this process may not use.
    pub const FAULT: Self = Self(libc::EFAULT);
    /// Not permitted.
    pub const PERM: Self = Self(libc::EPERM);
    /// No such thread or process.
    pub const SRCH: Self = Self(libc::ESRCH);
    /// This kernel has no such call.
    pub const NOSYS: Self = Self(libc::ENOSYS);
    /// Already in use.
    pub const BUSY: Self = Self(libc::EBUSY);
    /// Waiting would be a deadlock.
    pub const DEADLK: Self = Self(libc::EDEADLK);
    /// The process has no more descriptors.
    pub const MFILE: Self = Self(libc::EMFILE);
    /// Not a socket.
    pub const NOTSOCK: Self = Self(libc::ENOTSOCK);
    /// The connection is in progress.
    pub const INPROGRESS: Self = Self(libc::EINPROGRESS);
    /// The time limit has passed.
    pub const TIMEDOUT: Self = Self(libc::ETIMEDOUT);

    /// The error with this number.
    ///
    /// # Panics
    /// `number` is not positive.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        assert!(number > 0, "an error number must be positive");
        Self(number)
    }

    /// The number, as in the kernel's headers.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The error that the C library recorded for the last failed call of this kernel thread.
    pub(crate) fn last() -> Self {
        Self(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// The kernel's description of the error. Allocates.
impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl core::error::Error for Errno {}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}
