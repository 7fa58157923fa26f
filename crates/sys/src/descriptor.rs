//! Reading, writing and polling a descriptor of any kind.
#![expect(unsafe_code, reason = "system calls on descriptors")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// Reads up to a buffer of bytes: how many, 0 at the end. Blocks as the descriptor does.
///
/// # Errors
/// `INTR`: a signal came first. What the file, pipe or terminal says. Injected ones.
pub fn read(descriptor: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    fault::check(Call::Read)?;
    let number = descriptor.as_raw_fd() as usize;
    // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`.
    unsafe { call(libc::SYS_read, [number, buffer.as_mut_ptr().addr(), buffer.len()]) }
}

/// Writes bytes: how many the descriptor took. Blocks as the descriptor does.
///
/// # Errors
/// `INTR`: a signal came first. What the file, pipe or terminal says. Injected ones.
pub fn write(descriptor: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    fault::check(Call::Write)?;
    let number = descriptor.as_raw_fd() as usize;
    // SAFETY: the kernel reads `bytes.len()` bytes from `bytes`.
    unsafe { call(libc::SYS_write, [number, bytes.as_ptr().addr(), bytes.len()]) }
}

/// Whether a read would return at once: there are bytes, or it is the end.
///
/// # Errors
/// `INTR`: a signal came first. Injected ones.
pub fn is_readable(descriptor: BorrowedFd<'_>) -> Result<bool, Errno> {
    fault::check(Call::Read)?;
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [(&raw mut poll).addr(), 1, (&raw const at_once).addr(), 0, 0];
    // SAFETY: the kernel reads and writes one `pollfd` and reads one `timespec`.
    let ready = unsafe { call(libc::SYS_ppoll, arguments) }?;
    Ok(ready > 0)
}

#[cfg(test)]
mod tests;
