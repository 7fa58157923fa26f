//! Waiting until a descriptor is ready (`ppoll`).
#![expect(unsafe_code, reason = "a system call on descriptors")]

use core::time::Duration;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::Errno;
use crate::raw::call;

/// The event to wait for on a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, a connection to accept, or the end.
    Read,
    /// Room to write, or a completed connection.
    Write,
}

impl Interest {
    fn events(self) -> libc::c_short {
        match self {
            Self::Read => libc::POLLIN,
            Self::Write => libc::POLLOUT,
        }
    }
}

/// Waits until one of `wanted` is ready or has failed, at most for `timeout`. Returns whether one
/// is.
///
/// Blocks the kernel thread.
///
/// # Errors
/// `INTR`: a signal handler ran. `NOMEM`.
pub fn wait<const N: usize>(
    wanted: [(BorrowedFd<'_>, Interest); N],
    timeout: Option<Duration>,
) -> Result<bool, Errno> {
    let mut descriptors = wanted.map(|(descriptor, interest)| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: interest.events(),
        revents: 0,
    });
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    let limit_address = limit.as_ref().map_or(0, |limit| core::ptr::from_ref(limit).addr());
    let arguments = [descriptors.as_mut_ptr().expose_provenance(), N, limit_address, 0, 0];
    // SAFETY: the kernel reads and writes N entries and reads the limit, all of them local.
    unsafe { call(libc::SYS_ppoll, arguments) }.map(|ready| ready > 0)
}

#[cfg(test)]
mod tests;
