//! Page traces of programs: read from valgrind, and recorded in a compact form.
//!
//! valgrind's lackey (`--trace-mem=yes`) prints a line for each instruction, load and store. If a
//! program touches a page twice with no other page in between, the second touch hits in every TLB
//! and does not change the order of use. So a recording leaves it out.
//!
//! ```text
//! "kyotrac1"  references: u64  then bytes:
//!  (8 bytes)  (little endian)          0  varint: not among the last 64 pages, a zigzag distance
//!                                  1..63  the page after whose last use this many others were used
//!                                64..255  this many minus 62 steps of depth 1: two pages alternate
//! ```

use core::fmt;

use crate::address::PageNumber;

const MAGIC: &[u8; 8] = b"kyotrac1";
const HEADER_BYTES: usize = 16;
const DEPTH: usize = 64;
const ESCAPE: u8 = 0;
const RUN: u8 = 64;
const RUN_MIN: u8 = 2;
const RUN_MAX: u8 = u8::MAX - RUN + RUN_MIN;

/// The page that a line of lackey's output touches; `None` for other lines.
#[must_use]
pub fn page_of_lackey_line(line: &[u8]) -> Option<PageNumber> {
    let (b"I  " | b" L " | b" S " | b" M ", address) = line.split_at_checked(3)? else {
        return None;
    };
    let digits = address.iter().position(|&byte| byte == b',')?;
    if digits == 0 || digits > 16 {
        return None;
    }
    let value = address[..digits].iter().try_fold(0, |value: u64, &byte| {
        let digit = char::from(byte).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })?;
    Some(PageNumber::of_address(value))
}

/// The last pages, most recently used first.
#[derive(Debug, Clone, Default)]
struct Recent {
    pages: Vec<PageNumber>,
}

impl Recent {
    fn depth(&self, page: PageNumber) -> Option<usize> {
        self.pages.iter().position(|&held| held == page)
    }

    /// Moves the page at `depth` to the front.
    fn again(&mut self, depth: usize) -> Option<PageNumber> {
        self.pages.get_mut(..=depth)?.rotate_right(1);
        self.pages.first().copied()
    }

    fn new_page(&mut self, page: PageNumber) {
        self.pages.truncate(DEPTH - 1);
        self.pages.insert(0, page);
    }

    fn last(&self) -> u64 {
        self.pages.first().map_or(0, |page| page.get())
    }
}

/// Records a trace.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    recent: Recent,
    bytes: Vec<u8>,
    references: u64,
    /// Steps of depth 1 that have not been written yet.
    run: u8,
}

impl Recorder {
    /// Records a touch. Usually needs one byte if the page differs from the last one.
    pub fn touch(&mut self, page: PageNumber) {
        self.references += 1;
        let depth = self.recent.depth(page);
        if depth == Some(0) {
            return;
        }
        if depth != Some(1) || self.run == RUN_MAX {
            self.end_run();
        }
        match depth {
            Some(1) => self.run += 1,
            Some(depth) => self.bytes.push(depth as u8),
            None => {
                self.bytes.push(ESCAPE);
                let distance = page.get().wrapping_sub(self.recent.last()) as i64;
                push_varint(&mut self.bytes, (distance << 1 ^ distance >> 63) as u64);
                self.recent.new_page(page);
            }
        }
        if let Some(depth) = depth {
            self.recent.again(depth);
        }
    }

    /// Current size of the recording in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.bytes.len() + 1
    }

    /// The recording.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.end_run();
        let mut whole = MAGIC.to_vec();
        whole.extend(self.references.to_le_bytes());
        whole.append(&mut self.bytes);
        whole
    }

    fn end_run(&mut self) {
        match self.run {
            0 => {}
            1 => self.bytes.push(1),
            run => self.bytes.push(run - RUN_MIN + RUN),
        }
        self.run = 0;
    }
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The reason why a recording cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceError {
    /// It does not start with the magic number, or is shorter than the header.
    NotATrace,
    /// It ends inside a number.
    Truncated,
    /// The byte at this offset is invalid.
    Malformed(usize),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotATrace => write!(f, "not a page trace: it does not start with kyotrac1"),
            Self::Truncated => write!(f, "the page trace is truncated: record it again"),
            Self::Malformed(offset) => write!(f, "the page trace is damaged at byte {offset}"),
        }
    }
}

impl core::error::Error for TraceError {}

/// Iterates over the pages of a recording. Ends at the first error.
#[derive(Debug, Clone)]
pub struct Trace<'a> {
    bytes: &'a [u8],
    at: usize,
    recent: Recent,
    run: u8,
    references: u64,
}

impl<'a> Trace<'a> {
    /// Reads the recording in `bytes`.
    ///
    /// # Errors
    /// [`TraceError::NotATrace`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, TraceError> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(TraceError::NotATrace)?;
        let references = rest.first_chunk().ok_or(TraceError::NotATrace)?;
        if magic != MAGIC {
            return Err(TraceError::NotATrace);
        }
        let references = u64::from_le_bytes(*references);
        Ok(Self { bytes, at: HEADER_BYTES, recent: Recent::default(), run: 0, references })
    }

    /// Number of touches of the program, including those left out.
    #[must_use]
    pub fn references(&self) -> u64 {
        self.references
    }

    fn step(&mut self) -> Result<Option<PageNumber>, TraceError> {
        let malformed = TraceError::Malformed(self.at);
        if self.run > 0 {
            self.run -= 1;
            return Ok(self.recent.again(1));
        }
        let Some(&code) = self.bytes.get(self.at) else { return Ok(None) };
        self.at += 1;
        let page = match code {
            ESCAPE => {
                let zigzag = self.varint()?;
                let distance = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
                let number = self.recent.last().wrapping_add(distance as u64);
                let page = PageNumber::new(number).ok_or(malformed)?;
                self.recent.new_page(page);
                page
            }
            1..RUN => self.recent.again(usize::from(code)).ok_or(malformed)?,
            RUN.. => {
                self.run = code - RUN + RUN_MIN - 1;
                self.recent.again(1).ok_or(malformed)?
            }
        };
        Ok(Some(page))
    }

    fn varint(&mut self) -> Result<u64, TraceError> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(TraceError::Truncated)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(TraceError::Malformed(self.at - 1))
    }
}

impl Iterator for Trace<'_> {
    type Item = Result<PageNumber, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step().transpose();
        if matches!(step, Some(Err(_))) {
            (self.at, self.run) = (self.bytes.len(), 0);
        }
        step
    }
}
