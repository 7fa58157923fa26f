//! Strings: O(1) access by character, any Unicode character, one byte each while all are Latin-1.
//!
//! ```text
//! String [length][buffer] --> Buffer (narrow)  b b b b b b b b ...      one byte a character
//!                             Buffer (wide)    uuuu uuuu uuuu ...       four bytes a character
//! ```
//!
//! Invariants: a string's length never changes; a buffer holds at least as many characters as its
//! string has; every stored character is a Unicode scalar value. Writing a character above U+00FF
//! into a narrow string replaces the buffer, so a reader works on the buffer it found: a racing
//! write is then seen or not, and never tears.

pub(crate) mod bytes;
mod draft;
pub(crate) mod fold;
pub(crate) mod search;
#[cfg(test)]
mod tests;

pub use draft::Draft;

use crate::heap::Mutator;
use crate::heap::object::{FLAG_IMMUTABLE, FLAG_WIDE, Kind};
use crate::heap::word;
use crate::raise::Result;
use crate::value::Value;
use core::ops::Range;

/// A string's characters as they stood when it was looked at; good until the next safepoint.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    length: usize,
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
            address: bytes::payload(buffer),
            wide: buffer.flags() & FLAG_WIDE != 0,
        })
    }

    /// How many characters.
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

    /// The address of the first character.
    pub(super) fn address(self) -> usize {
        self.address
    }

    /// Character `i`.
    ///
    /// # Panics
    /// When there is none.
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
    /// When the range leaves the string.
    pub fn push_to(self, out: &mut String, range: Range<usize>) {
        assert!(range.end <= self.length, "range {range:?} of {}", self.length);
        if !self.wide {
            let start = out.len();
            let mut latin = core::mem::take(out).into_bytes();
            bytes::read(&mut latin, self.address + range.start, range.len());
            match String::from_utf8(latin) {
                // Latin-1 above 127 may look like UTF-8 by chance: only ASCII may stay as it is.
                Ok(text) if text.as_bytes()[start..].is_ascii() => *out = text,
                Ok(text) => replace_latin(out, text.into_bytes(), start),
                Err(error) => replace_latin(out, error.into_bytes(), start),
            }
            return;
        }
        out.extend(self.chars_in(range));
    }

    /// The whole as a Rust string.
    #[must_use]
    pub fn to_rust(self) -> String {
        let mut out = String::with_capacity(self.length);
        self.push_to(&mut out, 0..self.length);
        out
    }

    /// Whether two strings have the same characters.
    #[must_use]
    pub fn same(self, other: Self) -> bool {
        if self.length != other.length {
            return false;
        }
        if self.wide == other.wide {
            let width = if self.wide { 4 } else { 1 };
            return bytes::same(self.address, other.address, self.length * width);
        }
        self.chars().eq(other.chars())
    }
}

/// Puts the Latin-1 bytes from `start` on back as characters, behind the UTF-8 before them.
fn replace_latin(out: &mut String, mut all: Vec<u8>, start: usize) {
    let latin = all.split_off(start);
    // What stands before `start` was a string on entry.
    *out = String::from_utf8(all).unwrap_or_default();
    out.extend(latin.into_iter().map(char::from));
}

/// The Rust string that `value` holds, if it is a string.
#[must_use]
pub fn to_rust(value: Value) -> Option<String> {
    Text::of(value).map(Text::to_rust)
}

/// Whether a string may be written.
#[must_use]
pub fn is_mutable(string: Value) -> bool {
    string.flags() & FLAG_IMMUTABLE == 0
}

/// Writes character `i` of a string, widening it where `c` needs that. `i` must be inside.
///
/// # Errors
/// No memory to widen.
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

/// Copies `from` over the characters of `string` that begin at `at`; ranges may overlap. The caller
/// has checked that both ranges are inside.
///
/// # Errors
/// No memory to widen.
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
        // Narrow to wide: different buffers, no overlap.
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
    Ok(Text { length: text.length, address: bytes::payload(buffer), wide: true })
}

/// A new string with a range of another.
///
/// # Errors
/// No memory.
pub fn copy(m: &mut Mutator, text: Text, range: Range<usize>) -> Result {
    let mut draft = Draft::new(m, range.len(), text.wide)?;
    draft.extend_text(text, range);
    Ok(draft.finish())
}

/// A new string of these characters.
///
/// # Errors
/// No memory.
pub fn from_chars(m: &mut Mutator, chars: &[char]) -> Result {
    let mut draft = Draft::new(m, chars.len(), chars.iter().any(|&c| c > '\u{ff}'))?;
    for &c in chars {
        draft.push(c);
    }
    Ok(draft.finish())
}
