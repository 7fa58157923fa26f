//! Bytes and characters inside objects.
//!
//! A string consists of a fixed length and a buffer. The buffer fixes the width of its characters.
//! So a reader that races with a widening `string-set!` sees the old buffer or the new one, and
//! both are consistent.

use crate::heap::object::{FLAG_WIDE, Kind};
use crate::heap::word::{self, WORD_BYTES};
use crate::value::Value;

/// Bytevectors.
impl Value {
    /// The length of a bytevector.
    #[inline]
    #[must_use]
    pub fn bytevector_length(self) -> Option<usize> {
        if !self.is_kind(Kind::Bytevector) {
            return None;
        }
        Some(self.field_at(0).as_fixnum()? as usize)
    }

    /// Byte `i` of a bytevector.
    #[inline]
    #[must_use]
    pub fn byte_ref(self, i: usize) -> Option<u8> {
        if i < self.bytevector_length()? {
            Some(word::load_byte(self.address() + 2 * WORD_BYTES + i))
        } else {
            None
        }
    }

    /// Writes byte `i` of a bytevector; `false` if it does not exist.
    #[inline]
    #[must_use]
    pub fn byte_set(self, i: usize, byte: u8) -> bool {
        let inside = self.bytevector_length().is_some_and(|length| i < length);
        if inside {
            word::store_byte(self.address() + 2 * WORD_BYTES + i, byte);
        }
        inside
    }

    /// A copy of a bytevector's bytes.
    #[must_use]
    pub fn to_bytes(self) -> Option<Vec<u8>> {
        let length = self.bytevector_length()?;
        Some(load_bytes(self.address() + 2 * WORD_BYTES, length))
    }
}

/// Strings.
impl Value {
    /// The length of a string, in characters.
    #[inline]
    #[must_use]
    pub fn string_length(self) -> Option<usize> {
        if !self.is_kind(Kind::String) {
            return None;
        }
        Some(self.field_at(0).as_fixnum()? as usize)
    }

    /// The buffer of a string.
    #[inline]
    #[must_use]
    pub fn string_buffer(self) -> Option<Self> {
        if self.is_kind(Kind::String) { Some(self.field_at(1)) } else { None }
    }

    /// Replaces the buffer of a string by one of at least its length.
    pub fn set_string_buffer(self, buffer: Self) {
        debug_assert!(buffer.is_kind(Kind::Buffer), "not a buffer");
        debug_assert!(self.string_length() <= Some(buffer.buffer_capacity()), "buffer too short");
        if self.is_kind(Kind::String) {
            self.set_field_at(1, buffer);
        }
    }

    /// Character `i` of a string.
    #[inline]
    #[must_use]
    pub fn string_ref(self, i: usize) -> Option<char> {
        if i < self.string_length()? { self.field_at(1).buffer_char(i) } else { None }
    }

    /// Writes character `i` of a string; `false` if the buffer is too narrow or the character does
    /// not exist.
    #[inline]
    #[must_use]
    pub fn string_set_in_place(self, i: usize, c: char) -> bool {
        if self.string_length().is_none_or(|length| i >= length) {
            return false;
        }
        let buffer = self.field_at(1);
        let fits = c <= '\u{ff}' || buffer.is_wide();
        if fits {
            buffer.set_buffer_char(i, c);
        }
        fits
    }

    /// A copy of a string.
    #[must_use]
    pub fn to_text(self) -> Option<String> {
        let length = self.string_length()?;
        let buffer = self.field_at(1);
        if !buffer.is_wide() {
            let bytes = load_bytes(buffer.address() + WORD_BYTES, length);
            return Some(match String::from_utf8(bytes) {
                Ok(ascii_or_luck) if ascii_or_luck.is_ascii() => ascii_or_luck,
                Ok(latin) => latin.into_bytes().iter().map(|&byte| char::from(byte)).collect(),
                Err(latin) => latin.as_bytes().iter().map(|&byte| char::from(byte)).collect(),
            });
        }
        Some((0..length).filter_map(|i| buffer.buffer_char(i)).collect())
    }
}

/// Buffers.
impl Value {
    /// Whether a buffer uses four bytes for a character.
    #[inline]
    #[must_use]
    pub fn is_wide(self) -> bool {
        self.flags() & FLAG_WIDE != 0
    }

    /// How many characters fit a buffer; 0 for other objects.
    #[inline]
    #[must_use]
    pub fn buffer_capacity(self) -> usize {
        if !self.is_kind(Kind::Buffer) {
            return 0;
        }
        self.size_words() * WORD_BYTES / if self.is_wide() { 4 } else { 1 }
    }

    /// Character `i` of a buffer.
    #[inline]
    #[must_use]
    pub fn buffer_char(self, i: usize) -> Option<char> {
        if i >= self.buffer_capacity() {
            return None;
        }
        let payload = self.address() + WORD_BYTES;
        if self.is_wide() {
            char::from_u32(word::load_quarter(payload + 4 * i))
        } else {
            Some(char::from(word::load_byte(payload + i)))
        }
    }

    /// Writes character `i` of a buffer.
    ///
    /// # Panics
    /// If the buffer is shorter, or too narrow for `c`.
    #[inline]
    pub fn set_buffer_char(self, i: usize, c: char) {
        assert!(i < self.buffer_capacity(), "character {i} of a buffer");
        let payload = self.address() + WORD_BYTES;
        if self.is_wide() {
            word::store_quarter(payload + 4 * i, u32::from(c));
        } else {
            let byte = u8::try_from(u32::from(c)).expect("the buffer is as wide as its characters");
            word::store_byte(payload + i, byte);
        }
    }
}

/// Copies bytes out, eight at a time.
pub(crate) fn load_bytes(address: usize, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length.next_multiple_of(WORD_BYTES));
    for at in (0..length).step_by(WORD_BYTES) {
        bytes.extend_from_slice(&word::load(address + at).to_ne_bytes());
    }
    bytes.truncate(length);
    bytes
}
