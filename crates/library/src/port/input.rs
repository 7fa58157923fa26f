//! The reading end: a buffer before a file or before nothing.

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

/// Where bytes come from.
#[derive(Debug)]
enum Source {
    /// All of them are in the buffer.
    Memory,
    /// A file, a pipe, a terminal.
    File(OwnedFd),
    Tls(Arc<Tls>),
    /// What a session's user sends.
    Fed(Arc<Feed>),
    /// The process's standard input.
    Standard(OwnedFd),
}

/// Bytes read and not taken yet.
#[derive(Debug)]
pub(crate) struct Input {
    /// None once closed.
    source: Option<Source>,
    buffer: Vec<u8>,
    /// Where the next byte stands in the buffer.
    next: usize,
    /// Where the operation under way began: it starts again from there if it is interrupted.
    kept: Option<usize>,
    /// Bytes that left the buffer, for messages.
    before: u64,
    /// A terminal's end of file was seen and not reported yet.
    at_end: bool,
    /// A line was read whose end was a carriage return at the end of the buffer: a newline that
    /// comes next belongs to it.
    after_return: bool,
    line: u32,
    column: u32,
    source_number: Option<u32>,
    /// Its place among the open ports of an account.
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

    /// The same, counted among the open ports of an account.
    pub(crate) fn counted(mut self, held: Option<Held>) -> Self {
        self.held = held;
        self
    }

    /// Bytes of its buffer.
    pub(crate) fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Bytes in memory, or the UTF-8 of a string.
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

    /// The file that it reads from.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Some(Source::File(file) | Source::Standard(file)) => Some(file.as_fd()),
            Some(Source::Memory | Source::Tls(_) | Source::Fed(_)) | None => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.source.is_some()
    }

    /// Closes the file; the standard input is only let go.
    pub(crate) fn close(&mut self) {
        self.source = None;
        self.held = None;
        self.buffer = Vec::new();
        self.next = 0;
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.next..]
    }

    /// Runs an operation of several reads. If it is interrupted, or has no memory for what it took, all of that is put back: the
    /// operation is made again.
    pub(crate) fn attempt<T>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.kept.is_some() {
            // Part of an operation that puts back more.
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

    /// Takes the file's place back to where the program is: before what was read ahead of it.
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

    /// Reads more behind what is buffered; `false` at the end. Waits for the host.
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

    /// Waits for the host once; how many bytes came. A newline among them that belongs to a line
    /// read before is not kept.
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
        // The user sees what he is asked before he answers.
        let asking = matches!(source, Source::Fed(feed) if !feed.is_ready());
        let question = asking.then(|| standard::current(m, Role::Output));
        let result = waiting(m, |is_cut| {
            // Where that fails, the next write says so.
            let _ = question.map(|question| question.flush_at_exit(|_| true));
            source.read(buffer, is_cut)
        });
        let count = *result.as_ref().unwrap_or(&0);
        self.buffer.truncate(old + count);
        self.at_end = count == 0 && result.is_ok();
        if count > 0 && core::mem::take(&mut self.after_return) && self.buffer[old] == b'\n' {
            // Removed rather than taken: an interrupted operation must not find it again.
            self.buffer.remove(old);
            self.before += 1;
        }
        result
    }

    /// The next byte, without taking it; none at the end.
    pub(crate) fn peek_byte(&mut self, m: &mut Mutator) -> io::Result<Option<u8>> {
        if self.next == self.buffer.len() && !self.fill(m)? {
            return Ok(None);
        }
        Ok(Some(self.buffer[self.next]))
    }

    /// Takes the next byte; none at the end.
    pub(crate) fn read_byte(&mut self, m: &mut Mutator) -> io::Result<Option<u8>> {
        let byte = self.peek_byte(m)?;
        match byte {
            Some(_) => self.next += 1,
            None => self.report_end(),
        }
        Ok(byte)
    }

    /// The end was reported: a terminal may have more afterwards.
    pub(crate) fn report_end(&mut self) {
        self.at_end = false;
    }

    /// Takes up to `count` bytes, as many as come before the end.
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

    /// The next character, without taking it; none at the end.
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

    /// Leaves a byte that is no UTF-8 behind, so that the next read can go on after it.
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

    /// Takes the next character; none at the end.
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

    /// Takes a line without its end, which is a newline, a carriage return or both (R7RS, 6.13.2);
    /// none at the end of the input. Does not wait for what follows a carriage return.
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

    /// Reads until the buffer has the next line's end, or all there is; the line's length.
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

    /// Takes `length` buffered bytes and the line's end behind them, if it is there.
    fn take_line(&mut self, m: &mut Mutator, length: usize) -> io::Result<String> {
        let end = self.next + length;
        let mut line = String::new();
        if let Ok(text) = str::from_utf8(&self.buffered()[..length]) {
            line.push_str(text);
            self.next = end;
            self.column += line.chars().count() as u32;
        }
        // Where that is not UTF-8, the characters before the wrong byte, and then the error.
        while self.next < end {
            line.extend(self.read_char(m)?);
        }
        self.take_line_end();
        Ok(line)
    }

    /// Takes the line end that stands next in the buffer, if one does.
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

    /// Takes up to `count` characters; none at the end.
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

    /// Takes up to `count` characters more; whether there were any.
    fn read_part(&mut self, m: &mut Mutator, count: usize, text: &mut String) -> io::Result<bool> {
        let end = text.len();
        let chars = (0..count).map_while(|_| self.read_char(m).transpose());
        text.push_str(&chars.collect::<io::Result<String>>()?);
        m.pause_in_port().map_err(|_| ErrorKind::Interrupted)?;
        Ok(text.len() > end)
    }

    /// Whether reading an item would not wait.
    pub(crate) fn is_ready(&mut self, m: &mut Mutator) -> bool {
        if self.after_return && self.buffered().is_empty() && self.may_read() {
            // What has come may be the second half of a line end. Reading it does not wait, and an
            // error is seen by the next operation.
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
                // Where polling fails, reading will say why, and not wait.
                Some(Source::File(file) | Source::Standard(file)) => {
                    descriptor::is_readable(file.as_fd()).unwrap_or(true)
                }
            }
    }

    /// Where the next character stands: line and column, from 1.
    pub(crate) fn place(&self) -> (u32, u32) {
        (self.line, self.column)
    }

    /// The number by which the reader names this port in positions.
    pub(crate) fn source_number(&mut self, name: &str) -> u32 {
        *self.source_number.get_or_insert_with(|| source::register(name))
    }
}

impl Source {
    /// Reads, again and again while signals come and `is_cut` does not say that one is meant.
    fn read(&mut self, buffer: &mut [u8], is_cut: impl Fn() -> bool) -> io::Result<usize> {
        let file = match self {
            Self::Memory => return Ok(0),
            Self::Tls(tls) => return tls.read(buffer, &is_cut),
            Self::Fed(feed) => return feed.read(buffer, is_cut),
            Self::File(file) => file,
            Self::Standard(file) => {
                // A prompt without a newline should be seen before the answer is awaited. Where that
                // fails, the next write says so.
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

/// A port's characters for the reader, which knows no errors: the first one ends the characters and
/// is kept.
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
        // What was peeked is in the buffer: taking it cannot fail.
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
