//! UTF-8 decoding of a buffer that may end inside a character.

/// What some bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// No bytes.
    Nothing,
    /// A character, and its length in bytes.
    Character(char, usize),
    /// The beginning of a character; the rest has not arrived.
    Partial,
    /// Invalid UTF-8.
    Wrong,
}

/// Decodes the first character of `bytes`.
#[inline]
pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let Some(&first) = bytes.first() else { return Decoded::Nothing };
    if first < 0x80 {
        return Decoded::Character(char::from(first), 1);
    }
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return Decoded::Wrong,
    };
    let available = &bytes[..length.min(bytes.len())];
    match str::from_utf8(available) {
        Ok(text) => match text.chars().next() {
            Some(c) => Decoded::Character(c, length),
            None => Decoded::Wrong,
        },
        // Without an error length the bytes are valid but incomplete.
        Err(error) if error.error_len().is_none() => Decoded::Partial,
        Err(_) => Decoded::Wrong,
    }
}
