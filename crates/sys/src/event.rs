//! An event counter that kernel threads wait for like any descriptor (`eventfd`).
#![expect(unsafe_code, reason = "system calls on descriptors")]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::{call, owned};

/// An event counter. [`notify`](Event::notify) makes its descriptor readable,
/// [`drain`](Event::drain) makes it unreadable.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// A counter at 0. Its reads and writes never block.
    ///
    /// # Errors
    /// `MFILE`: no more descriptors. `NOMEM`.
    pub fn new() -> Result<Self, Errno> {
        fault::check(Call::Open)?;
        let flags = (libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) as usize;
        // SAFETY: takes numbers.
        let descriptor = unsafe { call(libc::SYS_eventfd2, [0, flags]) }?;
        // SAFETY: the kernel has just created it, and nothing else owns it.
        Ok(Self(unsafe { owned(descriptor) }))
    }

    /// Adds one, which wakes threads that poll the descriptor. Safe in a signal handler.
    ///
    /// # Errors
    /// Injected errors. A counter at its limit is readable anyway, so that counts as success.
    pub fn notify(&self) -> Result<(), Errno> {
        fault::check(Call::Write)?;
        let one = 1_u64;
        let arguments = [self.0.as_raw_fd() as usize, &raw const one as usize, size_of::<u64>()];
        // SAFETY: the kernel reads eight bytes from `one`.
        match unsafe { call(libc::SYS_write, arguments) } {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Takes all notifications. Returns their number, 0 if there are none.
    ///
    /// # Errors
    /// Injected errors.
    pub fn drain(&self) -> Result<u64, Errno> {
        fault::check(Call::Read)?;
        let mut count = 0_u64;
        let arguments = [self.0.as_raw_fd() as usize, &raw mut count as usize, size_of::<u64>()];
        // SAFETY: the kernel writes eight bytes to `count`.
        match unsafe { call(libc::SYS_read, arguments) } {
            Ok(_) => Ok(count),
            Err(Errno::AGAIN) => Ok(0),
            Err(errno) => Err(errno),
        }
    }
}

impl From<OwnedFd> for Event {
    /// An event counter received from another process. If the descriptor is not one,
    /// [`Event::notify`] and [`Event::drain`] report the errors of its file.
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests;
