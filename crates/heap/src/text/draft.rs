//! A new string that is filled from left to right before any other code knows it.

use super::{Text, bytes};
use crate::heap::Mutator;
use crate::heap::object::FLAG_WIDE;
use crate::heap::pause::{PART, parts};
use crate::heap::word::{self, WORD_BYTES};
use crate::raise::{Raise, Result};
use crate::value::Value;
use core::ops::Range;

/// A string under construction with a known length.
#[derive(Debug)]
pub struct Draft {
    string: Value,
    address: usize,
    wide: bool,
    filled: usize,
    length: usize,
}

impl Draft {
    /// A string of `length` characters. Each takes four bytes if `wide`.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(m: &mut Mutator, length: usize, wide: bool) -> Result<Self> {
        let flags = if wide { FLAG_WIDE } else { 0 };
        // A long buffer is not filled in advance; it is written in slices.
        let buffer = if length > PART {
            let char_bytes = if wide { 4 } else { 1 };
            let bytes = length.checked_mul(char_bytes).ok_or_else(Raise::out_of_memory)?;
            m.begin(flags, bytes.div_ceil(WORD_BYTES))?
        } else {
            m.buffer(length, flags)?
        };
        let string = m.string_over(length, buffer)?;
        Ok(Self { string, address: bytes::payload(buffer), wide, filled: 0, length })
    }

    /// Adds a character.
    ///
    /// # Panics
    /// If the string is full, or narrow and `c` needs a wide one.
    #[inline]
    pub fn push(&mut self, c: char) {
        assert!(self.filled < self.length, "a draft of {} characters is full", self.length);
        if self.wide {
            word::store_quarter(self.address + 4 * self.filled, u32::from(c));
        } else {
            let code = u32::from(c);
            assert!(code < 256, "U+{code:04X} in a narrow string");
            word::store_byte(self.address + self.filled, code as u8);
        }
        self.filled += 1;
    }

    /// Adds a range of another string.
    ///
    /// # Panics
    /// As [`Draft::push`]; and if the range exceeds `text`.
    pub fn extend_text(&mut self, text: Text, range: Range<usize>) {
        assert!(range.end <= text.length(), "range {range:?} of {}", text.length());
        if text.is_wide() != self.wide {
            for c in text.chars_in(range) {
                self.push(c);
            }
            return;
        }
        assert!(self.filled + range.len() <= self.length, "a draft of {} is full", self.length);
        let width = if self.wide { 4 } else { 1 };
        bytes::copy(
            text.address() + range.start * width,
            self.address + self.filled * width,
            range.len() * width,
        );
        self.filled += range.len();
    }

    /// As [`Draft::extend_text`], in slices.
    ///
    /// # Errors
    /// As [`Mutator::pause`].
    pub fn extend_in_parts(
        &mut self,
        m: &mut Mutator,
        text: Text,
        range: Range<usize>,
    ) -> Result<()> {
        for part in parts(range) {
            let is_whole = part.len() == PART;
            self.extend_text(text, part);
            if is_whole {
                m.pause(&[self.string, text.held()])?;
            }
        }
        Ok(())
    }

    /// Adds a character `count` times, in slices.
    ///
    /// # Errors
    /// As [`Mutator::pause`].
    pub fn fill(&mut self, m: &mut Mutator, c: char, count: usize) -> Result<()> {
        for part in parts(0..count) {
            part.for_each(|_| self.push(c));
            m.pause(&[self.string])?;
        }
        Ok(())
    }

    /// The value that a [pause](crate::heap::pause) must keep.
    pub fn held(&self) -> Value {
        self.string
    }

    /// The finished string.
    #[must_use]
    pub fn finish(self) -> Value {
        debug_assert_eq!(self.filled, self.length, "a draft is filled before it is finished");
        self.string
    }
}
