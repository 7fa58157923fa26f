//! The output end of a port: a buffer for a file, or a growing text in memory.

use super::{BUFFER_BYTES, Tls, waiting};
use core::fmt;
use kyocho_heap::account::{Account, Held};
use kyocho_heap::heap::Mutator;
use kyocho_sys::descriptor;
use kyocho_sys::error::Errno;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The destination of the bytes.
#[derive(Debug)]
enum Sink {
    /// None: they stay in the buffer.
    Memory,
    /// A file, a pipe, a terminal.
    File(OwnedFd),
    Tls(Arc<Tls>),
    /// The user of a session.
    User(User),
}

/// The writer for a session's user. An interrupted write has written nothing.
struct User(Box<dyn Write + Send>);

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User")
    }
}

/// When the buffer is flushed, besides when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// At no other time.
    WhenFull,
    /// After every line, for terminals.
    EachLine,
    /// After every call, for standard error.
    EachCall,
}

/// An output end with its buffered bytes.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` once closed.
    sink: Option<Sink>,
    flush: Flush,
    buffer: Vec<u8>,
    /// Its count among the open ports of an account.
    held: Option<Held>,
    /// Whether the last character was a newline, or there was none.
    at_line_start: bool,
}

impl Sink {
    fn write(&mut self, bytes: &[u8], is_cut: &dyn Fn() -> bool) -> io::Result<usize> {
        match self {
            Self::Memory => Ok(bytes.len()),
            Self::File(file) => descriptor::write(file.as_fd(), bytes).map_err(Into::into),
            Self::Tls(tls) => tls.write(bytes, is_cut),
            Self::User(user) => user.0.write(bytes),
        }
    }
}

impl Output {
    fn new(sink: Sink, flush: Flush) -> Self {
        Self { sink: Some(sink), flush, buffer: Vec::new(), held: None, at_line_start: true }
    }

    pub(crate) fn of_memory() -> Self {
        Self::new(Sink::Memory, Flush::WhenFull)
    }

    pub(crate) fn of_file(file: OwnedFd, flush: Flush) -> Self {
        Self::new(Sink::File(file), flush)
    }

    pub(crate) fn of_tls(tls: Arc<Tls>, flush: Flush) -> Self {
        Self::new(Sink::Tls(tls), flush)
    }

    pub(super) fn of_user(user: Box<dyn Write + Send>) -> Self {
        Self::new(Sink::User(User(user)), Flush::EachLine)
    }

    /// As before, counted among the open ports of an account.
    pub(crate) fn counted(mut self, held: Option<Held>) -> Self {
        self.held = held;
        self
    }

    /// Whether it is counted for this account, or for no account.
    pub(super) fn is_of(&self, account: &Arc<Account>) -> bool {
        self.held.as_ref().is_none_or(|held| held.is_of(account))
    }

    /// An output end that is closed already, because the process has no such descriptor.
    pub(super) fn closed() -> Self {
        let mut output = Self::of_memory();
        output.sink = None;
        output
    }

    /// The file that it writes.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.sink {
            Some(Sink::File(file)) => Some(file.as_fd()),
            _ => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.sink.is_some()
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.sink, Some(Sink::File(_) | Sink::Tls(_)))
    }

    pub(crate) fn is_at_line_start(&self) -> bool {
        self.at_line_start
    }

    /// The content of a memory port; `None` for others.
    pub(crate) fn gathered(&self) -> Option<&[u8]> {
        match self.sink {
            Some(Sink::Memory) => Some(&self.buffer),
            _ => None,
        }
    }

    /// Writes bytes. Waits for the host if the buffer is full. If interrupted, it has written
    /// nothing.
    pub(crate) fn write(&mut self, m: &mut Mutator, bytes: &[u8]) -> io::Result<()> {
        let Some(&last) = bytes.last() else { return Ok(()) };
        if let Some(Sink::Memory) = self.sink {
            self.make_room(m, bytes.len())?;
        }
        if self.buffer.len() >= BUFFER_BYTES {
            self.pass_on(m)?;
        }
        self.buffer.extend_from_slice(bytes);
        self.at_line_start = last == b'\n';
        if !self.is_due(bytes) {
            return Ok(());
        }
        match self.pass_on(m) {
            // The bytes are in the buffer, so repeating the call would write them twice.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            result => result,
        }
    }

    /// Makes sure that a memory port can grow by this many bytes. Its buffer is charged as it
    /// grows.
    fn make_room(&mut self, m: &Mutator, bytes: usize) -> io::Result<()> {
        let limit = m.heap.limits().bytes_max;
        if bytes > limit - self.buffer.len().min(limit) {
            return Err(ErrorKind::OutOfMemory.into());
        }
        let before = self.buffer.capacity();
        if bytes > before - self.buffer.len() {
            let after = (self.buffer.len() + bytes).max(2 * before);
            m.charge(after - before).map_err(|_| ErrorKind::OutOfMemory)?;
            self.buffer.reserve_exact(after - self.buffer.len());
        }
        Ok(())
    }

    /// Bytes of its buffer.
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    fn is_due(&self, new: &[u8]) -> bool {
        self.buffer.len() >= BUFFER_BYTES
            || match self.flush {
                Flush::WhenFull => false,
                Flush::EachLine => new.contains(&b'\n'),
                Flush::EachCall => true,
            }
    }

    /// Flushes the buffer, from a Lisp thread.
    pub(crate) fn pass_on(&mut self, m: &mut Mutator) -> io::Result<()> {
        if self.has_nothing_to_pass_on() {
            return Ok(());
        }
        waiting(m, |is_cut| self.flush(is_cut))
    }

    fn has_nothing_to_pass_on(&self) -> bool {
        matches!(self.sink, None | Some(Sink::Memory)) || self.buffer.is_empty()
    }

    /// Flushes the buffer. After a signal it stops if `is_cut` returns true. Bytes that the host
    /// refuses are dropped with the error. Otherwise a broken pipe would make every later call
    /// fail, and the buffer would grow.
    pub(super) fn flush(&mut self, is_cut: impl Fn() -> bool) -> io::Result<()> {
        if self.has_nothing_to_pass_on() {
            return Ok(());
        }
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let mut done = 0;
        while done < self.buffer.len() {
            match sink.write(&self.buffer[done..], &is_cut) {
                // A write that has accepted some bytes does not report the signal that ended it.
                Ok(count) if done + count == self.buffer.len() || !is_cut() => done += count,
                Ok(count) => {
                    self.buffer.drain(..done + count);
                    return Err(ErrorKind::Interrupted.into());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted && !is_cut() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.buffer.drain(..done);
                    return Err(error);
                }
                Err(error) => {
                    self.buffer.clear();
                    return Err(error);
                }
            }
        }
        self.buffer.clear();
        Ok(())
    }

    /// Flushes and closes. If interrupted, it stays open.
    pub(crate) fn close(&mut self, m: &mut Mutator) -> io::Result<()> {
        match self.pass_on(m) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            result => {
                self.close_silently();
                result
            }
        }
    }

    /// Writes a line and flushes, without a Lisp thread.
    pub(super) fn write_line_outside(&mut self, line: &str) -> io::Result<()> {
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
        self.flush(|| false)
    }

    /// Ends an unfinished line and flushes, without a Lisp thread.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if self.is_open() && !self.at_line_start {
            self.buffer.push(b'\n');
            self.at_line_start = true;
        }
        self.flush(|| false)
    }

    /// Closes silently. Buffered bytes are lost.
    pub(super) fn close_silently(&mut self) {
        self.sink = None;
        self.buffer = Vec::new();
        self.held = None;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // The collector drops a port that was not closed: write as much as is possible without
        // waiting. An error cannot be reported.
        match &self.sink {
            Some(Sink::File(file)) => write_now(file, &self.buffer),
            Some(Sink::Tls(tls)) => tls.send_now(&self.buffer),
            Some(Sink::Memory | Sink::User(_)) | None => {}
        }
    }
}

/// Writes what the other side accepts at once; a regular file accepts everything.
fn write_now(file: &OwnedFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match descriptor::write_now(file.as_fd(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Flush, Output};
    use std::io::ErrorKind;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_interrupted_write_keeps_the_rest_in_the_buffer() {
        const BYTES: usize = 1 << 20;
        let (ours, _theirs) = UnixStream::pair().unwrap();
        // The write accepts a part, like a write that a signal ends.
        ours.set_nonblocking(true).unwrap();
        let mut output = Output::of_file(ours.into(), Flush::WhenFull);
        output.buffer = vec![b'x'; BYTES];
        let ended = output.flush(|| true).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
        assert!((1..BYTES).contains(&output.buffer.len()), "{} are left", output.buffer.len());
    }
}
