//! Writing a line to standard error where the caller must not wait: no lock, no allocation, no
//! blocking call.
//!
//! The standard library's handle has a lock, which another thread may hold for any time. The
//! descriptor is shared with other processes, so it is not set to non-blocking mode either.
#![expect(unsafe_code, reason = "system calls on a borrowed descriptor and on bytes")]

use core::fmt;
use core::time::Duration;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::poll::{self, Interest};
use crate::raw::call;

/// Longest line; the rest is cut off. Below `PIPE_BUF`, so that lines of several writers do not
/// mix.
const BYTES_MAX: usize = 512;

/// Writes one line; or a part of it or nothing, if standard error accepts nothing now (a full pipe,
/// a stopped terminal).
///
/// # Errors
/// `AGAIN`: it accepts nothing now. Others: it is closed or broken.
pub fn tell(line: fmt::Arguments<'_>) -> Result<(), Errno> {
    let mut text = Text { used: 0, bytes: [0; BYTES_MAX] };
    // Text that does not fit is cut off.
    let _cut = fmt::write(&mut text, line);
    let end = text.used.min(BYTES_MAX - 1);
    text.bytes[end] = b'\n';
    // SAFETY: a number. If the descriptor is closed or has been reused, the write fails or goes
    // there.
    let descriptor = unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
    write(descriptor, &text.bytes[..=end])
}

/// Writes `bytes` if that is possible without blocking.
fn write(descriptor: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    fault::check(Call::Write)?;
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let (file, part) = (descriptor.as_raw_fd() as usize, &raw const part as usize);
    // At the file's own position, and only if that does not block.
    let arguments = [file, part, 1, usize::MAX, usize::MAX, libc::RWF_NOWAIT as usize];
    // SAFETY: the kernel reads one part, and the bytes that it points to.
    if unsafe { call(libc::SYS_pwritev2, arguments) }.is_ok() {
        return Ok(());
    }
    // Terminals and most kinds of files do not support the flag.
    if !poll::wait([(descriptor, Interest::Write)], Some(Duration::ZERO))? {
        return Err(Errno::AGAIN);
    }
    // SAFETY: the kernel reads these bytes.
    unsafe { call(libc::SYS_write, [file, bytes.as_ptr() as usize, bytes.len()]) }.map(drop)
}

/// A line of text in a fixed buffer.
struct Text {
    used: usize,
    bytes: [u8; BYTES_MAX],
}

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = &mut self.bytes[self.used..];
        let fits = part.len().min(room.len());
        room[..fits].copy_from_slice(&part.as_bytes()[..fits]);
        self.used += fits;
        if fits < part.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
