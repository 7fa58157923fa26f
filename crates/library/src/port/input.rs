//! The input end of a port: a buffer, with or without a file behind it.

use super::decode::{Decoded, decode};
use super::{BUFFER_BYTES, Feed, Role, Tls, standard, waiting};
use kyocho_heap::account::Held;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::pause::{PART, parts};
use kyocho_syntax::reader;
use kyocho_syntax::source;
use kyocho_sys::descriptor;
use kyocho_sys::error::Errno;
use rustix::fs::{SeekFrom, seek};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The source of the bytes.
#[derive(Debug)]
enum Source {
    /// None: all bytes are in the buffer.
    Memory,
    /// A file, a pipe, a terminal.
    File(OwnedFd),
    Tls(Arc<Tls>),
    /// The input queue of a session.
    Fed(Arc<Feed>),
    /// The process's standard input.
    Standard(OwnedFd),
}

/// An input end with its buffered bytes.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` once closed.
    source: Option<Source>,
    buffer: Vec<u8>,
    /// Index of the next byte in the buffer.
    next: usize,
    /// Where the current operation began. It restarts there if it is interrupted.
    kept: Option<usize>,
    /// Bytes that have left the buffer, for positions in messages.
    before: u64,
    /// An end of file was read and is not reported yet.
    at_end: bool,
    /// The last line ended with a carriage return at the end of the buffer. A newline that follows
    /// belongs to it.
    after_return: bool,
    line: u32,
    column: u32,
    source_number: Option<u32>,
    /// Its count among the open ports of an account.
    held: Option<Held>,
}

impl Input {
    fn new(source: Source, buffer: Vec<u8>) -> Self {
        Self {
            source: Some(source),
            buffer,
            next: 0,
            kept: None,
            before: 0,
            at_end: false,
            after_return: false,
            line: 1,
            column: 1,
            source_number: None,
            held: None,
        }
    }

    /// As before, counted among the open ports of an account.
    pub(crate) fn counted(mut self, held: Option<Held>) -> Self {
        self.held = held;
        self
    }

    /// Bytes of its buffer.
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Input from bytes in memory, or from the UTF-8 of a string.
    pub(crate) fn of_memory(bytes: Vec<u8>) -> Self {
        Self::new(Source::Memory, bytes)
    }

    pub(crate) fn of_file(file: OwnedFd) -> Self {
        Self::new(Source::File(file), Vec::new())
    }

    pub(crate) fn of_tls(tls: Arc<Tls>) -> Self {
        Self::new(Source::Tls(tls), Vec::new())
    }

    pub(super) fn of_feed(feed: Arc<Feed>) -> Self {
        Self::new(Source::Fed(feed), Vec::new())
    }

    pub(super) fn of_standard(file: OwnedFd) -> Self {
        Self::new(Source::Standard(file), Vec::new())
    }

    /// The file that it reads.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Some(Source::File(file) | Source::Standard(file)) => Some(file.as_fd()),
            Some(Source::Memory | Source::Tls(_) | Source::Fed(_)) | None => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.source.is_some()
    }

    /// Closes the file. Standard input is only detached.
    pub(crate) fn close(&mut self) {
        self.source = None;
        self.held = None;
        self.buffer = Vec::new();
        self.next = 0;
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.next..]
    }

    /// Runs an operation of several reads. If it is interrupted, or lacks memory for its result,
    /// the bytes are put back, and the operation can be repeated.
    pub(crate) fn attempt<T>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.kept.is_some() {
            // This is part of a larger operation, which will put back everything.
            return operation(self);
        }
        let place = (self.line, self.column, self.after_return);
        self.kept = Some(self.next);
        let result = operation(self);
        let kept = self.kept.take().unwrap_or(self.next);
        if let Err(error) = &result
            && matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::OutOfMemory)
        {
            self.next = kept;
            (self.line, self.column, self.after_return) = place;
        }
        result
    }

    /// Moves the file's position back to the first byte that the program has not read.
    pub(super) fn give_back(&mut self) -> io::Result<()> {
        let ahead = self.buffered().len() as i64;
        if ahead > 0
            && let Some(file) = self.file()
        {
            seek(file, SeekFrom::Current(-ahead))?;
        }
        self.before += self.next as u64;
        self.buffer.clear();
        self.next = 0;
        self.at_end = false;
        self.after_return = false;
        Ok(())
    }

    /// Reads more into the buffer; `false` at the end of file. Waits for the host.
    fn fill(&mut self, m: &mut Mutator) -> io::Result<bool> {
        let old = self.buffered().len();
        while !self.at_end {
            if self.fill_once(m)? == 0 {
                return Ok(false);
            }
            if self.buffered().len() > old {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads once from the host. Returns the number of bytes. A newline among them that belongs to
    /// the line before is dropped.
    fn fill_once(&mut self, m: &mut Mutator) -> io::Result<usize> {
        let taken = self.kept.unwrap_or(self.next);
        self.before += taken as u64;
        self.buffer.drain(..taken);
        self.next -= taken;
        self.kept = self.kept.map(|_| 0);
        let old = self.buffer.len();
        let source = match &mut self.source {
            None | Some(Source::Memory) => return Ok(0),
            Some(source) => source,
        };
        self.buffer.resize(old + BUFFER_BYTES, 0);
        let buffer = &mut self.buffer[old..];
        // Output is flushed first, so that the user sees a question before answering it.
        let asking = matches!(source, Source::Fed(feed) if !feed.is_ready());
        let question = asking.then(|| standard::current(m, Role::Output));
        let result = waiting(m, |is_cut| {
            // If this fails, the next write reports it.
            let _ = question.map(|question| question.flush_at_exit(|_| true));
            source.read(buffer, is_cut)
        });
        let count = *result.as_ref().unwrap_or(&0);
        self.buffer.truncate(old + count);
        self.at_end = count == 0 && result.is_ok();
        if count > 0 && core::mem::take(&mut self.after_return) && self.buffer[old] == b'\n' {
            // Removed rather than skipped, so that an interrupted operation does not find it again.
            self.buffer.remove(old);
            self.before += 1;
        }
        result
    }

    /// The next byte, without consuming it; `None` at the end of file.
    pub(crate) fn peek_byte(&mut self, m: &mut Mutator) -> io::Result<Option<u8>> {
        if self.next == self.buffer.len() && !self.fill(m)? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.next]))
    }

    /// Consumes the next byte; `None` at the end of file.
    pub(crate) fn read_byte(&mut self, m: &mut Mutator) -> io::Result<Option<u8>> {
        let byte = self.peek_byte(m)?;
        match byte {
            Some(_) => self.next += 1,
            None => self.report_end(),
        }
        Ok(byte)
    }

    /// Records that the end of file was reported. A terminal may have more input afterwards.
    pub(crate) fn report_end(&mut self) {
        self.at_end = false;
    }

    /// Consumes up to `count` bytes, fewer only at the end of file.
    pub(crate) fn read_bytes(&mut self, m: &mut Mutator, count: usize) -> io::Result<Vec<u8>> {
        self.attempt(|input| {
            while input.buffered().len() < count && input.fill(m)? {}
            let taken = input.buffered().len().min(count);
            let bytes = input.buffered()[..taken].to_vec();
            input.next += taken;
            if taken == 0 {
                input.report_end();
            }
            Ok(bytes)
        })
    }

    /// The next character, without consuming it; `None` at the end of file.
    #[inline]
    pub(crate) fn peek_char(&mut self, m: &mut Mutator) -> io::Result<Option<char>> {
        Ok(self.peek_decoded(m)?.map(|(c, _)| c))
    }

    fn peek_decoded(&mut self, m: &mut Mutator) -> io::Result<Option<(char, usize)>> {
        loop {
            match decode(self.buffered()) {
                Decoded::Nothing if self.fill(m)? => {}
                Decoded::Nothing => return Ok(None),
                Decoded::Character(c, length) => return Ok(Some((c, length))),
                Decoded::Partial if self.fill(m)? => {}
                Decoded::Partial | Decoded::Wrong => return Err(self.skip_wrong()),
            }
        }
    }

    /// Skips a byte that is not UTF-8, so that the next read continues after it.
    #[cold]
    fn skip_wrong(&mut self) -> io::Error {
        let at = self.before + self.next as u64;
        let byte = self.buffer[self.next];
        self.next += 1;
        let message = format!(
            "not UTF-8: byte #x{byte:02x} at offset {at} (line {}, column {})",
            self.line, self.column
        );
        io::Error::new(ErrorKind::InvalidData, message)
    }

    /// Consumes the next character; `None` at the end of file.
    #[inline]
    pub(crate) fn read_char(&mut self, m: &mut Mutator) -> io::Result<Option<char>> {
        let Some((c, length)) = self.peek_decoded(m)? else {
            self.report_end();
            return Ok(None);
        };
        self.take(c, length);
        Ok(Some(c))
    }

    #[inline]
    fn take(&mut self, c: char, length: usize) {
        self.next += length;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }

    /// Consumes a line and returns it without its end. An end is a newline, a carriage return or
    /// both (R7RS, 6.13.2). `None` at the end of file. Does not wait for the byte after a carriage
    /// return.
    pub(crate) fn read_line(&mut self, m: &mut Mutator) -> io::Result<Option<String>> {
        self.attempt(|input| {
            let length = input.buffer_line(m)?;
            if input.buffered().is_empty() {
                input.report_end();
                return Ok(None);
            }
            input.take_line(m, length).map(Some)
        })
    }

    /// Reads until the buffer contains the end of the next line, or the end of file. Returns the
    /// line's length.
    fn buffer_line(&mut self, m: &mut Mutator) -> io::Result<usize> {
        let mut seen = 0;
        loop {
            let rest = &self.buffered()[seen..];
            if let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                return Ok(seen + end);
            }
            seen += rest.len();
            if !self.fill(m)? {
                return Ok(seen);
            }
        }
    }

    /// Consumes `length` buffered bytes and the line end after them, if there is one.
    fn take_line(&mut self, m: &mut Mutator, length: usize) -> io::Result<String> {
        let end = self.next + length;
        let mut line = String::new();
        if let Ok(text) = str::from_utf8(&self.buffered()[..length]) {
            line.push_str(text);
            self.next = end;
            self.column += line.chars().count() as u32;
        }
        // If they are not UTF-8: consume the characters before the wrong byte, then return the
        // error.
        while self.next < end {
            line.extend(self.read_char(m)?);
        }
        self.take_line_end();
        Ok(line)
    }

    /// Consumes a line end, if it is next in the buffer.
    fn take_line_end(&mut self) {
        let length = match self.buffered() {
            [] => return,
            [b'\r', b'\n', ..] => 2,
            [b'\r'] => {
                self.after_return = true;
                1
            }
            _ => 1,
        };
        self.take('\n', length);
    }

    /// Consumes up to `count` characters; `None` at the end of file.
    pub(crate) fn read_string(
        &mut self,
        m: &mut Mutator,
        count: usize,
    ) -> io::Result<Option<String>> {
        self.attempt(|input| {
            let mut text = String::new();
            let mut parts = parts(0..count);
            while let Some(part) = parts.next()
                && input.read_part(m, part.len(), &mut text)?
            {}
            Ok((!text.is_empty() || count == 0).then_some(text))
        })
    }

    /// Consumes up to `count` further characters. Returns whether there were any.
    fn read_part(&mut self, m: &mut Mutator, count: usize, text: &mut String) -> io::Result<bool> {
        let end = text.len();
        let chars = (0..count).map_while(|_| self.read_char(m).transpose());
        text.push_str(&chars.collect::<io::Result<String>>()?);
        m.pause_in_port().map_err(|_| ErrorKind::Interrupted)?;
        Ok(text.len() > end)
    }

    /// Whether reading an item would not block.
    pub(crate) fn is_ready(&mut self, m: &mut Mutator) -> bool {
        if self.after_return && self.buffered().is_empty() && self.may_read() {
            // The available bytes may be the second half of a line end. Reading them does not
            // block, and the next operation reports an error.
            let _ = self.fill_once(m);
        }
        self.may_read()
    }

    fn may_read(&self) -> bool {
        let whole = !matches!(decode(self.buffered()), Decoded::Nothing | Decoded::Partial);
        whole
            || self.at_end
            || match &self.source {
                None | Some(Source::Memory) => true,
                Some(Source::Tls(tls)) => tls.is_ready(),
                Some(Source::Fed(feed)) => feed.is_ready(),
                // If polling fails, reading reports why, and does not block.
                Some(Source::File(file) | Source::Standard(file)) => {
                    descriptor::is_readable(file.as_fd()).unwrap_or(true)
                }
            }
    }

    /// Line and column of the next character, from 1.
    pub(crate) fn place(&self) -> (u32, u32) {
        (self.line, self.column)
    }

    /// The number of this port's name in source positions.
    pub(crate) fn source_number(&mut self, name: &str) -> u32 {
        *self.source_number.get_or_insert_with(|| source::register(name))
    }
}

impl Source {
    /// Reads, and continues after a signal unless `is_cut` returns true.
    fn read(&mut self, buffer: &mut [u8], is_cut: impl Fn() -> bool) -> io::Result<usize> {
        let file = match self {
            Self::Memory => return Ok(0),
            Self::Tls(tls) => return tls.read(buffer, &is_cut),
            Self::Fed(feed) => return feed.read(buffer, is_cut),
            Self::File(file) => file,
            Self::Standard(file) => {
                // A question without a newline should be visible before the answer is awaited. If
                // flushing fails, the next write reports it.
                let _ = standard::port(Role::Output).flush_at_exit(|_| true);
                file
            }
        };
        loop {
            match descriptor::read(file.as_fd(), buffer) {
                Err(Errno::INTR) if !is_cut() => {}
                result => return Ok(result?),
            }
        }
    }
}

/// A port's characters for the reader, which handles no errors. The first error ends the characters
/// and is kept.
#[derive(Debug)]
pub(crate) struct Characters<'a> {
    m: &'a mut Mutator,
    pub(crate) input: &'a mut Input,
    pub(crate) error: Option<io::Error>,
    /// Characters until the next pause.
    left: usize,
}

impl<'a> Characters<'a> {
    pub(crate) fn new(m: &'a mut Mutator, input: &'a mut Input) -> Self {
        Self { m, input, error: None, left: PART }
    }
}

impl reader::Characters for Characters<'_> {
    fn peek(&mut self) -> Option<char> {
        if self.error.is_some() {
            return None;
        }
        self.input.peek_char(self.m).unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }

    fn advance(&mut self) {
        if self.error.is_some() {
            return;
        }
        // The character was peeked, so it is in the buffer, and consuming it cannot fail.
        self.error = self.input.read_char(self.m).err();
        self.left -= 1;
        if self.left == 0 {
            self.left = PART;
            self.pause();
        }
    }

    fn pause(&mut self) {
        let paused = self.m.pause_in_port().map_err(|_| ErrorKind::Interrupted.into());
        self.error = self.error.take().or(paused.err());
    }
}
