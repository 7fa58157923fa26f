//! The writing end: a buffer before a file, or a growing text in memory.

use super::{BUFFER_BYTES, Tls, waiting};
use core::fmt;
use kyocho_heap::account::{Account, Held};
use kyocho_heap::heap::Mutator;
use kyocho_sys::descriptor;
use kyocho_sys::error::Errno;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Where bytes go.
#[derive(Debug)]
enum Sink {
    /// They stay in the buffer.
    Memory,
    /// A file, a pipe, a terminal.
    File(OwnedFd),
    Tls(Arc<Tls>),
    /// The user of a session, wherever he is.
    User(User),
}

/// Who reads what a session writes. A write that is interrupted has taken nothing.
struct User(Box<dyn Write + Send>);

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User")
    }
}

/// When the buffer is written out, besides when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Only then.
    WhenFull,
    /// After every line: a terminal.
    EachLine,
    /// After every call: the standard error.
    EachCall,
}

/// Bytes written and not passed on yet.
#[derive(Debug)]
pub(crate) struct Output {
    /// None once closed.
    sink: Option<Sink>,
    flush: Flush,
    buffer: Vec<u8>,
    /// Its place among the open ports of an account.
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

    /// The same, counted among the open ports of an account.
    pub(crate) fn counted(mut self, held: Option<Held>) -> Self {
        self.held = held;
        self
    }

    /// Whether it counts among an account's, or among nobody's.
    pub(super) fn is_of(&self, account: &Arc<Account>) -> bool {
        self.held.as_ref().is_none_or(|held| held.is_of(account))
    }

    /// One that was closed before it was opened: the process has no such descriptor.
    pub(super) fn closed() -> Self {
        let mut output = Self::of_memory();
        output.sink = None;
        output
    }

    /// The file that it writes to.
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

    /// What a memory port has gathered; none for others.
    pub(crate) fn gathered(&self) -> Option<&[u8]> {
        match self.sink {
            Some(Sink::Memory) => Some(&self.buffer),
            _ => None,
        }
    }

    /// Writes bytes; waits for the host when the buffer is full. Interrupted, it has written nothing.
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
            // The bytes are in the buffer: to write them again would double them.
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            result => result,
        }
    }

    /// Sees that a port in memory may gather so many bytes more: its buffer is charged for as it grows.
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

    /// Passes on what is buffered, from a Lisp thread.
    pub(crate) fn pass_on(&mut self, m: &mut Mutator) -> io::Result<()> {
        if self.has_nothing_to_pass_on() {
            return Ok(());
        }
        waiting(m, |is_cut| self.flush(is_cut))
    }

    fn has_nothing_to_pass_on(&self) -> bool {
        matches!(self.sink, None | Some(Sink::Memory)) || self.buffer.is_empty()
    }

    /// Passes on what is buffered, until that is done or `is_cut` says after a signal that it is
    /// meant. What the host refuses is dropped with the error, or a broken pipe would make every
    /// later call fail, and the buffer grow.
    pub(super) fn flush(&mut self, is_cut: impl Fn() -> bool) -> io::Result<()> {
        if self.has_nothing_to_pass_on() {
            return Ok(());
        }
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let mut done = 0;
        while done < self.buffer.len() {
            match sink.write(&self.buffer[done..], &is_cut) {
                // A write that has taken some says nothing of the signal that ended it.
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

    /// Flushes and closes. Interrupted, it stays open.
    pub(crate) fn close(&mut self, m: &mut Mutator) -> io::Result<()> {
        match self.pass_on(m) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            result => {
                self.let_go();
                result
            }
        }
    }

    /// Writes a line and passes everything on, without a Lisp thread.
    pub(super) fn tell(&mut self, line: &str) -> io::Result<()> {
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
        self.flush(|| false)
    }

    /// Ends a line that was begun, and passes everything on, without a Lisp thread.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        if self.is_open() && !self.at_line_start {
            self.buffer.push(b'\n');
            self.at_line_start = true;
        }
        self.flush(|| false)
    }

    /// Closes without a word: what is buffered is lost.
    pub(super) fn let_go(&mut self) {
        self.sink = None;
        self.buffer = Vec::new();
        self.held = None;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // A port that nobody closed, in the collector's hands: all is written that can be without waiting for anybody. There is nobody to tell of
        // an error.
        match &self.sink {
            Some(Sink::File(file)) => write_now(file, &self.buffer),
            Some(Sink::Tls(tls)) => tls.send_now(&self.buffer),
            Some(Sink::Memory | Sink::User(_)) | None => {}
        }
    }
}

/// Writes what the other side takes at once; a plain file takes all.
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
    fn a_write_that_is_cut_in_the_middle_ends_there_and_keeps_the_rest() {
        const BYTES: usize = 1 << 20;
        let (ours, _theirs) = UnixStream::pair().unwrap();
        // It takes a part, as one that a signal ends does.
        ours.set_nonblocking(true).unwrap();
        let mut output = Output::of_file(ours.into(), Flush::WhenFull);
        output.buffer = vec![b'x'; BYTES];
        let ended = output.flush(|| true).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
        assert!((1..BYTES).contains(&output.buffer.len()), "{} are left", output.buffer.len());
    }
}
