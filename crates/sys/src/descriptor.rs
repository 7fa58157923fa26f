//! Opening files; reading, writing and polling descriptors of any kind.
#![expect(unsafe_code, reason = "system calls on descriptors")]

use core::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading, without waiting for the other end of a named pipe.
    ReadAtOnce,
    /// Writing over what is there. A named pipe that nobody reads is refused (`NXIO`).
    Change,
    /// Writing from the beginning; what it held is gone. Made if it is not there.
    Replace,
    /// Writing behind what it holds. Made if it is not there.
    Append,
}

/// Opens a file. Blocks where the file does: a named pipe waits for its other end.
///
/// # Errors
/// `INTR`: a signal came first. What the file system says. Injected ones.
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
    // SAFETY: the kernel has just made it, for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}

/// Whether programs that are executed get a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inheritance {
    /// They get it, with its number.
    Inherited,
    /// It is closed for them.
    Closed,
}

/// Says whether programs that are executed from now on get a descriptor.
///
/// # Errors
/// Injected ones.
pub fn set_inheritance(descriptor: BorrowedFd<'_>, to: Inheritance) -> Result<(), Errno> {
    fault::check(Call::Open)?;
    let flags = if to == Inheritance::Closed { libc::FD_CLOEXEC } else { 0 };
    let arguments = [descriptor.as_raw_fd() as usize, libc::F_SETFD as usize, flags as usize];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_fcntl, arguments) }?;
    Ok(())
}

/// Names the process that is sent signals about a descriptor, where it is set to send any (`O_ASYNC`), whoever was named before.
///
/// # Errors
/// `SRCH`: there is no such process. Injected ones.
pub fn tell(descriptor: BorrowedFd<'_>, process: u32) -> Result<(), Errno> {
    fault::check(Call::Open)?;
    let arguments = [descriptor.as_raw_fd() as usize, libc::F_SETOWN as usize, process as usize];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_fcntl, arguments) }.map(drop)
}

/// Takes a descriptor over that this program was started with. Those it starts do not get it.
///
/// # Errors
/// `BADF`: there is none of that number. Injected ones.
///
/// # Safety
/// Nobody else in this program owns the descriptor, or takes it over.
pub unsafe fn adopt(number: u32) -> Result<OwnedFd, Errno> {
    fault::check(Call::Open)?;
    let arguments = [number as usize, libc::F_SETFD as usize, libc::FD_CLOEXEC as usize];
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_fcntl, arguments) }?;
    // SAFETY: it exists, and is ours by the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}

/// Makes descriptor `number` another file: that of `by`. What it was before is closed. Programs that are executed get it.
///
/// # Errors
/// `BADF`: `number` is beyond the limit. `INVAL`: it is `by` itself. Injected ones.
pub fn replace(number: u32, by: BorrowedFd<'_>) -> Result<(), Errno> {
    fault::check(Call::Open)?;
    let arguments = [by.as_raw_fd() as usize, number as usize, 0];
    // SAFETY: takes numbers. Who has the old file under this number has the new one now, as was asked for.
    unsafe { call(libc::SYS_dup3, arguments) }?;
    Ok(())
}

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

/// Writes the bytes that the descriptor takes without waiting for anybody: how many. What is neither a plain file nor a socket is set not to block,
/// for all who share its open file.
///
/// # Errors
/// `AGAIN`: it takes none. `INTR`: a signal came first. What the file, pipe, socket or terminal says. Injected ones.
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
