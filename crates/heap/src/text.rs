//! Strings: O(1) access by index, any Unicode character. A character takes one byte while all
//! characters of the string are Latin-1.
//!
//! ```text
//! String [length][buffer] --> Buffer (narrow)  b b b b b b b b ...      one byte for a character
//!                             Buffer (wide)    uuuu uuuu uuuu ...       four bytes for a character
//! ```
//!
//! Invariants: a string's length never changes; a buffer has room for at least as many characters
//! as its string has; every stored character is a Unicode scalar value. Writing a character above
//! U+00FF into a narrow string replaces the buffer. A reader keeps using the buffer that it found,
//! so it sees a racing write completely or not at all.

pub mod bytes;
mod draft;
pub mod fold;
pub mod search;
#[cfg(test)]
mod tests;

pub use draft::Draft;

use crate::heap::Mutator;
use crate::heap::object::{FLAG_IMMUTABLE, FLAG_WIDE, Kind};
use crate::heap::pause::{PART, parts};
use crate::heap::word;
use crate::raise::Result;
use crate::value::Value;
use core::ops::Range;

/// A view of a string's characters, valid until the next safepoint.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    length: usize,
    buffer: Value,
    address: usize,
    wide: bool,
}

impl Text {
    /// The characters of `value`, if it is a string.
    #[inline]
    #[must_use]
    pub fn of(value: Value) -> Option<Self> {
        if !value.is_kind(Kind::String) {
            return None;
        }
        let length = value.field(0)?.as_fixnum()? as usize;
        let buffer = value.field(1)?;
        Some(Self {
            length,
            buffer,
            address: bytes::payload(buffer),
            wide: buffer.flags() & FLAG_WIDE != 0,
        })
    }

    /// The number of characters.
    #[inline]
    #[must_use]
    pub fn length(self) -> usize {
        self.length
    }

    /// Whether a character takes four bytes.
    #[inline]
    #[must_use]
    pub fn is_wide(self) -> bool {
        self.wide
    }

    /// The value that a [pause](crate::heap::pause) must keep for the view to stay valid.
    pub fn held(self) -> Value {
        self.buffer
    }

    /// The address of the first character.
    pub(super) fn address(self) -> usize {
        self.address
    }

    /// Character `i`.
    ///
    /// # Panics
    /// If it does not exist.
    #[inline]
    #[must_use]
    pub fn char_at(self, i: usize) -> char {
        assert!(i < self.length, "character {i} of {}", self.length);
        if self.wide {
            let code = word::load_quarter(self.address + 4 * i);
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
        } else {
            char::from(word::load_byte(self.address + i))
        }
    }

    /// All characters.
    pub fn chars(self) -> impl DoubleEndedIterator<Item = char> + ExactSizeIterator + Clone {
        self.chars_in(0..self.length)
    }

    /// The characters of a range.
    ///
    /// # Panics
    /// On iteration past the end.
    pub fn chars_in(
        self,
        range: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = char> + ExactSizeIterator + Clone {
        range.map(move |i| self.char_at(i))
    }

    /// Appends the characters of a range to a Rust string.
    ///
    /// # Panics
    /// If the range exceeds the string.
    pub fn push_to(self, out: &mut String, range: Range<usize>) {
        assert!(range.end <= self.length, "range {range:?} of {}", self.length);
        if !self.wide {
            let start = out.len();
            let mut latin = core::mem::take(out).into_bytes();
            bytes::read(&mut latin, self.address + range.start, range.len());
            match String::from_utf8(latin) {
                // Latin-1 above 127 may look like UTF-8 by chance, so only ASCII bytes may stay as
                // they are.
                Ok(text) if text.as_bytes()[start..].is_ascii() => *out = text,
                Ok(text) => replace_latin(out, text.into_bytes(), start),
                Err(error) => replace_latin(out, error.into_bytes(), start),
            }
            return;
        }
        out.extend(self.chars_in(range));
    }

    /// All characters as a Rust string.
    #[must_use]
    pub fn to_rust(self) -> String {
        let mut out = String::with_capacity(self.length);
        self.push_to(&mut out, 0..self.length);
        out
    }

    /// All characters as a Rust string, in slices.
    ///
    /// # Errors
    /// As [`Mutator::pause`].
    pub fn to_rust_in_parts(self, m: &mut Mutator) -> Result<String> {
        self.to_rust_mapped(m, 0..self.length, |text| text)
    }

    /// A range as a Rust string, with each slice mapped.
    ///
    /// # Errors
    /// As [`Mutator::pause`].
    pub fn to_rust_mapped(
        self,
        m: &mut Mutator,
        range: Range<usize>,
        map: impl Fn(String) -> String,
    ) -> Result<String> {
        let mut out = String::with_capacity(range.len());
        for part in parts(range) {
            let mut text = String::with_capacity(part.len());
            self.push_to(&mut text, part);
            out.push_str(&map(text));
            m.pause(&[self.buffer])?;
        }
        Ok(out)
    }

    /// Whether the string contains a character.
    ///
    /// # Errors
    /// As [`Mutator::pause`].
    pub fn contains(self, m: &mut Mutator, c: char) -> Result<bool> {
        if !self.wide && c > '\u{ff}' {
            return Ok(false);
        }
        for part in parts(0..self.length) {
            if self.chars_in(part).any(|other| other == c) {
                return Ok(true);
            }
            m.pause(&[self.buffer])?;
        }
        Ok(false)
    }

    /// Whether two strings have the same characters.
    #[must_use]
    pub fn same(self, other: Self) -> bool {
        self.length == other.length && self.same_in(other, 0..self.length)
    }

    /// Whether two strings have the same characters in a range that exists in both.
    pub fn same_in(self, other: Self, range: Range<usize>) -> bool {
        if self.wide == other.wide {
            let width = if self.wide { 4 } else { 1 };
            let [a, b] = [self, other].map(|text| text.address + range.start * width);
            return bytes::same(a, b, range.len() * width);
        }
        self.chars_in(range.clone()).eq(other.chars_in(range))
    }
}

/// Replaces the Latin-1 bytes from `start` on by their characters in UTF-8, after the UTF-8 text
/// before `start`.
fn replace_latin(out: &mut String, mut all: Vec<u8>, start: usize) {
    let latin = all.split_off(start);
    // The bytes before `start` were a Rust string on entry, so they are UTF-8.
    *out = String::from_utf8(all).unwrap_or_default();
    out.extend(latin.into_iter().map(char::from));
}

/// The characters of `value` as a Rust string, if it is a string.
#[must_use]
pub fn to_rust(value: Value) -> Option<String> {
    Text::of(value).map(Text::to_rust)
}

/// Whether a string is mutable.
#[must_use]
pub fn is_mutable(string: Value) -> bool {
    string.flags() & FLAG_IMMUTABLE == 0
}

/// Writes character `i` of a string, and widens the string if `c` requires it. `i` must be a valid
/// index.
///
/// # Errors
/// Out of memory for the wide buffer.
pub fn set(m: &mut Mutator, string: Value, i: usize, c: char) -> Result<()> {
    let Some(text) = Text::of(string) else { return Ok(()) };
    debug_assert!(i < text.length, "character {i} of {}", text.length);
    if text.wide {
        word::store_quarter(text.address + 4 * i, u32::from(c));
    } else if let Ok(byte) = u8::try_from(u32::from(c)) {
        word::store_byte(text.address + i, byte);
    } else {
        let text = widen(m, string, text)?;
        word::store_quarter(text.address + 4 * i, u32::from(c));
    }
    Ok(())
}

/// Copies `from` over the characters of `string` from index `at` on. The ranges may overlap. The
/// caller has checked both ranges.
///
/// # Errors
/// Out of memory for a wide buffer.
pub fn overwrite(
    m: &mut Mutator,
    string: Value,
    at: usize,
    from: Text,
    range: Range<usize>,
) -> Result<()> {
    let Some(mut to) = Text::of(string) else { return Ok(()) };
    if from.wide && !to.wide {
        if from.chars_in(range.clone()).all(|c| u32::from(c) < 256) {
            for (i, c) in from.chars_in(range).enumerate() {
                word::store_byte(to.address + at + i, u32::from(c) as u8);
            }
            return Ok(());
        }
        to = widen(m, string, to)?;
    }
    if from.wide == to.wide {
        let width = if to.wide { 4 } else { 1 };
        bytes::copy(
            from.address + range.start * width,
            to.address + at * width,
            range.len() * width,
        );
    } else {
        // From narrow to wide: the buffers differ, so the ranges do not overlap.
        for (i, c) in from.chars_in(range).enumerate() {
            word::store_quarter(to.address + 4 * (at + i), u32::from(c));
        }
    }
    Ok(())
}

/// Gives `string` a wide buffer with the same characters.
fn widen(m: &mut Mutator, string: Value, text: Text) -> Result<Text> {
    let mut draft = Draft::new(m, text.length, true)?;
    draft.extend_text(text, 0..text.length);
    let wide = draft.finish();
    let buffer = wide.string_buffer().unwrap_or(Value::NIL);
    string.set_string_buffer(buffer);
    Ok(Text { length: text.length, buffer, address: bytes::payload(buffer), wide: true })
}

/// A new string with a range of another, copied in slices.
///
/// # Errors
/// Out of memory, or those of [`Mutator::pause`].
pub fn copy(m: &mut Mutator, text: Text, range: Range<usize>) -> Result {
    let mut draft = Draft::new(m, range.len(), text.wide)?;
    draft.extend_in_parts(m, text, range)?;
    Ok(draft.finish())
}

/// A new string with the characters of a Rust string, in slices.
///
/// # Errors
/// Out of memory, or those of [`Mutator::pause`].
pub fn new_in_parts(m: &mut Mutator, text: &str) -> Result {
    if text.len() <= PART {
        return Ok(m.string(text)?);
    }
    let (mut length, mut wide) = (0, false);
    for part in chunks(text) {
        length += part.chars().count();
        wide |= part.chars().any(|c| c > '\u{ff}');
        m.pause(&[])?;
    }
    let mut draft = Draft::new(m, length, wide)?;
    for part in chunks(text) {
        part.chars().for_each(|c| draft.push(c));
        m.pause(&[draft.held()])?;
    }
    Ok(draft.finish())
}

/// Slices of a text, of about [`PART`] bytes each.
fn chunks(mut text: &str) -> impl Iterator<Item = &str> {
    core::iter::from_fn(move || {
        let boundary = (PART..text.len()).find(|&at| text.is_char_boundary(at));
        let (part, rest) = text.split_at(boundary.unwrap_or(text.len()));
        text = rest;
        (!part.is_empty()).then_some(part)
    })
}

/// A new string of these characters.
///
/// # Errors
/// Out of memory.
pub fn from_chars(m: &mut Mutator, chars: &[char]) -> Result {
    let mut draft = Draft::new(m, chars.len(), chars.iter().any(|&c| c > '\u{ff}'))?;
    for &c in chars {
        draft.push(c);
    }
    Ok(draft.finish())
}
