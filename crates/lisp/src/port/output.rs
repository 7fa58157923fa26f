//! The writing end: a buffer before a file, or a growing text in memory.

use super::{BUFFER_BYTES, waiting};
use crate::heap::Mutator;
use kyocho_sys::descriptor;
use kyocho_sys::error::Errno;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};

/// Where bytes go.
#[derive(Debug)]
enum Sink {
    /// They stay in the buffer.
    Memory,
    /// A file, a pipe, a terminal.
    File(OwnedFd),
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
    /// Whether the last character was a newline, or there was none.
    at_line_start: bool,
}

impl Output {
    fn new(sink: Sink, flush: Flush) -> Self {
        Self { sink: Some(sink), flush, buffer: Vec::new(), at_line_start: true }
    }

    pub(crate) fn of_memory() -> Self {
        Self::new(Sink::Memory, Flush::WhenFull)
    }

    pub(crate) fn of_file(file: OwnedFd, flush: Flush) -> Self {
        Self::new(Sink::File(file), flush)
    }

    /// One that was closed before it was opened: the process has no such descriptor.
    pub(super) fn closed() -> Self {
        let mut output = Self::of_memory();
        output.sink = None;
        output
    }

    pub(crate) fn is_open(&self) -> bool {
        self.sink.is_some()
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.sink, Some(Sink::File(_)))
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

    /// Writes bytes; waits for the host when the buffer is full.
    pub(crate) fn write(&mut self, m: &Mutator, bytes: &[u8]) -> io::Result<()> {
        let Some(&last) = bytes.last() else { return Ok(()) };
        let limit = match self.sink {
            Some(Sink::Memory) => m.heap.limits().bytes_max,
            _ => usize::MAX,
        };
        if bytes.len() > limit - self.buffer.len().min(limit) {
            return Err(ErrorKind::OutOfMemory.into());
        }
        self.buffer.extend_from_slice(bytes);
        self.at_line_start = last == b'\n';
        if self.is_due(bytes) { waiting(m, || self.flush()) } else { Ok(()) }
    }

    fn is_due(&self, new: &[u8]) -> bool {
        if matches!(self.sink, Some(Sink::Memory)) {
            return false;
        }
        self.buffer.len() >= BUFFER_BYTES
            || match self.flush {
                Flush::WhenFull => false,
                Flush::EachLine => new.contains(&b'\n'),
                Flush::EachCall => true,
            }
    }

    /// Passes on what is buffered. What the host does not take is dropped with the error, or a
    /// broken pipe would make every later call fail, and the buffer grow.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if matches!(self.sink, None | Some(Sink::Memory)) || self.buffer.is_empty() {
            return Ok(());
        }
        let result = match &self.sink {
            Some(Sink::File(file)) => write_all(file, &self.buffer),
            Some(Sink::Memory) | None => Ok(()),
        };
        self.buffer.clear();
        result
    }

    /// Flushes and closes.
    pub(crate) fn close(&mut self, m: &Mutator) -> io::Result<()> {
        let result = waiting(m, || self.flush());
        self.sink = None;
        self.buffer = Vec::new();
        result
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match descriptor::write(file.as_fd(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

impl Drop for Output {
    fn drop(&mut self) {
        // A port that nobody closed: its text is not lost. There is nobody to tell of an error.
        let _ = self.flush();
    }
}
