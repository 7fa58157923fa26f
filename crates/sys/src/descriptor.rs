//! Opening files; reading, writing and polling descriptors of any kind.
#![expect(unsafe_code, reason = "system calls on descriptors")]

use core::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// The purpose of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading, without waiting for the other end of a named pipe.
    ReadAtOnce,
    /// Writing, without truncation. A named pipe without a reader is refused (`NXIO`).
    Change,
    /// Writing to an empty file: truncates an existing one, creates a missing one.
    Replace,
    /// Appending. Creates a missing file.
    Append,
}

/// Opens a file. Blocks as the file requires: a named pipe waits for its other end.
///
/// # Errors
/// `INTR`: a signal came first. Errors of the file system. Injected errors.
pub fn open(path: &CStr, access: Access) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    let flags = libc::O_CLOEXEC
        | match access {
            Access::Read => libc::O_RDONLY,
            Access::ReadAtOnce => libc::O_RDONLY | libc::O_NONBLOCK,
            Access::Change => libc::O_WRONLY | libc::O_NONBLOCK,
            Access::Replace => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
            Access::Append => libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND,
        };
    let folder = libc::AT_FDCWD as usize;
    // SAFETY: the kernel reads `path` up to its NUL.
    let number =
        unsafe { call(libc::SYS_openat, [folder, path.as_ptr().addr(), flags as usize, 0o666]) }?;
    // SAFETY: the kernel has just created it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}

/// Whether executed programs inherit a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inheritance {
    /// They inherit it, with its number.
    Inherited,
    /// It is closed on execution.
    Closed,
}

/// Sets whether programs executed from now on inherit a descriptor.
///
/// # Errors
/// Injected errors.
pub fn set_inheritance(descriptor: BorrowedFd<'_>, to: Inheritance) -> Result<(), Errno> {
    fault::check(Call::Open)?;
    let flags = if to == Inheritance::Closed { libc::FD_CLOEXEC } else { 0 };
    let arguments = [descriptor.as_raw_fd() as usize, libc::F_SETFD as usize, flags as usize];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_fcntl, arguments) }?;
    Ok(())
}

/// Sets the process that receives signals about a descriptor in asynchronous mode (`O_ASYNC`).
/// Replaces the previous one.
///
/// # Errors
/// `SRCH`: there is no such process. Injected errors.
pub fn set_owner(descriptor: BorrowedFd<'_>, process: u32) -> Result<(), Errno> {
    fault::check(Call::Open)?;
    let arguments = [descriptor.as_raw_fd() as usize, libc::F_SETOWN as usize, process as usize];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_fcntl, arguments) }.map(drop)
}

/// Takes ownership of a descriptor that this program was started with. Executed programs will not
/// inherit it.
///
/// # Errors
/// `BADF`: there is no descriptor with this number. Injected errors.
///
/// # Safety
/// Nothing else in this program owns the descriptor.
pub unsafe fn adopt(number: u32) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    let arguments = [number as usize, libc::F_SETFD as usize, libc::FD_CLOEXEC as usize];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_fcntl, arguments) }?;
    // SAFETY: it exists, and the caller guarantees that nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}

/// Makes descriptor `number` refer to the file of `by`, and closes the file that it referred to.
/// Executed programs inherit it.
///
/// # Errors
/// `BADF`: `number` is beyond the limit. `INVAL`: it is `by` itself. Injected errors.
pub fn replace(number: u32, by: BorrowedFd<'_>) -> Result<(), Errno> {
    fault::check(Call::Open)?;
    let arguments = [by.as_raw_fd() as usize, number as usize, 0];
    // SAFETY: takes numbers. Users of this number refer to the new file from now on, as requested.
    unsafe { call(libc::SYS_dup3, arguments) }?;
    Ok(())
}

/// Reads up to a buffer of bytes. Returns their number, 0 at the end. Blocks as the descriptor
/// does.
///
/// # Errors
/// `INTR`: a signal came first. Errors of the file, pipe or terminal. Injected errors.
pub fn read(descriptor: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    fault::check(Call::Read)?;
    let number = descriptor.as_raw_fd() as usize;
    // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`.
    unsafe { call(libc::SYS_read, [number, buffer.as_mut_ptr().addr(), buffer.len()]) }
}

/// Writes bytes. Returns how many the descriptor accepted. Blocks as the descriptor does.
///
/// # Errors
/// `INTR`: a signal came first. Errors of the file, pipe or terminal. Injected errors.
pub fn write(descriptor: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    fault::check(Call::Write)?;
    let number = descriptor.as_raw_fd() as usize;
    // SAFETY: the kernel reads `bytes.len()` bytes from `bytes`.
    unsafe { call(libc::SYS_write, [number, bytes.as_ptr().addr(), bytes.len()]) }
}

/// Writes as many bytes as the descriptor accepts without blocking. Returns their number. A
/// descriptor that is not a socket is set to non-blocking mode, for all that share its open file.
/// A plain file ignores this mode.
///
/// # Errors
/// `AGAIN`: it accepts none. `INTR`: a signal came first. Errors of the file, pipe, socket or
/// terminal. Injected errors.
pub fn write_now(descriptor: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    fault::check(Call::Write)?;
    let number = descriptor.as_raw_fd() as usize;
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as usize;
    let send = [number, bytes.as_ptr().addr(), bytes.len(), flags, 0, 0];
    // SAFETY: the kernel reads `bytes.len()` bytes from `bytes`.
    match unsafe { call(libc::SYS_sendto, send) } {
        Err(Errno::NOTSOCK) => {}
        result => return result,
    }
    // SAFETY: takes numbers.
    let flags = unsafe { call(libc::SYS_fcntl, [number, libc::F_GETFL as usize, 0]) }?;
    let flags = flags | libc::O_NONBLOCK as usize;
    // SAFETY: as above.
    unsafe { call(libc::SYS_fcntl, [number, libc::F_SETFL as usize, flags]) }?;
    // SAFETY: as for the first call.
    unsafe { call(libc::SYS_write, [number, bytes.as_ptr().addr(), bytes.len()]) }
}

/// Whether a read would return at once, with bytes or at the end.
///
/// # Errors
/// `INTR`: a signal came first. Injected errors.
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
