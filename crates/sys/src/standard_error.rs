//! A line on standard error from where nobody may wait: no lock, no allocation, no call that sleeps.
//!
//! The standard library's handle has a lock, which a thread of the program may hold for as long as it likes. The descriptor is shared
//! with other processes, so it is not made non-blocking either.
#![expect(unsafe_code, reason = "system calls on a borrowed descriptor and on bytes")]

use core::fmt;
use core::time::Duration;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::poll::{self, Interest};
use crate::raw::call;

/// Longest line; the rest is cut. Below `PIPE_BUF`, so that lines of several writers are not mixed.
const BYTES_MAX: usize = 512;

/// Writes one line, or a part of it, or nothing where standard error takes nothing now: a full pipe, a stopped terminal.
///
/// # Errors
/// `AGAIN`: it takes nothing now. Others: it is closed, or broken.
pub fn tell(line: fmt::Arguments<'_>) -> Result<(), Errno> {
    let mut text = Text { used: 0, bytes: [0; BYTES_MAX] };
    // What does not fit is cut.
    let _cut = fmt::write(&mut text, line);
    let end = text.used.min(BYTES_MAX - 1);
    text.bytes[end] = b'\n';
    // SAFETY: a number; one that is closed, or something else by now, fails or takes the line.
    let descriptor = unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) };
    write(descriptor, &text.bytes[..=end])
}

/// Writes `bytes` if that does not have to wait.
fn write(descriptor: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    fault::check(Call::Write)?;
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let (file, part) = (descriptor.as_raw_fd() as usize, &raw const part as usize);
    // At the file's own position, and not if it had to wait.
    let arguments = [file, part, 1, usize::MAX, usize::MAX, libc::RWF_NOWAIT as usize];
    // SAFETY: the kernel reads one part, and the bytes that it names.
    if unsafe { call(libc::SYS_pwritev2, arguments) }.is_ok() {
        return Ok(());
    }
    // Terminals, and files of most kinds, know no such flag.
    if !poll::wait([(descriptor, Interest::Write)], Some(Duration::ZERO))? {
        return Err(Errno::AGAIN);
    }
    // SAFETY: the kernel reads these bytes.
    unsafe { call(libc::SYS_write, [file, bytes.as_ptr() as usize, bytes.len()]) }.map(drop)
}

/// A line of text that allocates nothing.
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
