//! Why the kernel refused: its error number.

use core::fmt;

/// An error number of the host kernel, never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Interrupted by a signal handler.
    pub const INTR: Self = Self(libc::EINTR);
    /// Try again: it would block, or a resource is short for now.
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
    /// In use already.
    pub const BUSY: Self = Self(libc::EBUSY);
    /// Waiting for it would wait for ever.
    pub const DEADLK: Self = Self(libc::EDEADLK);
    /// This process has no more descriptors.
    pub const MFILE: Self = Self(libc::EMFILE);
    /// It is no socket.
    pub const NOTSOCK: Self = Self(libc::ENOTSOCK);
    /// The connection is being made.
    pub const INPROGRESS: Self = Self(libc::EINPROGRESS);
    /// The time has passed.
    pub const TIMEDOUT: Self = Self(libc::ETIMEDOUT);

    /// The error with this number.
    ///
    /// # Panics
    /// When the number is not positive: there is no such error.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        assert!(number > 0, "an error number is positive");
        Self(number)
    }

    /// Its number, as in the kernel's headers.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// What the C library noted for the last failed call of this kernel thread.
    pub(crate) fn last() -> Self {
        Self(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// The kernel's sentence for it. Allocates.
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
