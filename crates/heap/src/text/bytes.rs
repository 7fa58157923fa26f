//! Operations on byte ranges inside heap objects, a word at a time if possible.
//!
//! Other threads may write the same bytes meanwhile, so every access is atomic (see `heap::word`).
//! So `memcpy` cannot be used; eight bytes at a step cost little more.

use crate::heap::word::{self, WORD_BYTES};
use crate::value::Value;

/// Below this length single bytes are faster.
const WORDS_FROM: usize = 24;

/// The address of an object's payload.
#[inline]
pub fn payload(object: Value) -> usize {
    object.address() + WORD_BYTES
}

/// Copies `count` bytes; the ranges may overlap.
pub fn copy(from: usize, to: usize, count: usize) {
    if to > from && to < from + count {
        for i in (0..count).rev() {
            word::store_byte(to + i, word::load_byte(from + i));
        }
        return;
    }
    let mut done = 0;
    if count >= WORDS_FROM {
        while !(to + done).is_multiple_of(WORD_BYTES) {
            word::store_byte(to + done, word::load_byte(from + done));
            done += 1;
        }
        while done + WORD_BYTES <= count {
            word::publish(to + done, load_unaligned(from + done));
            done += WORD_BYTES;
        }
    }
    for i in done..count {
        word::store_byte(to + i, word::load_byte(from + i));
    }
}

/// The eight bytes at any address, from one or two aligned words. Reads no word that contains none
/// of them.
#[inline]
fn load_unaligned(address: usize) -> u64 {
    let shift = 8 * (address % WORD_BYTES) as u32;
    let aligned = address - address % WORD_BYTES;
    let low = word::load(aligned);
    if shift == 0 {
        return low;
    }
    low >> shift | word::load(aligned + WORD_BYTES) << (64 - shift)
}

/// Appends `count` bytes to a vector.
pub fn read(out: &mut Vec<u8>, from: usize, count: usize) {
    out.reserve(count);
    let mut done = 0;
    while done + WORD_BYTES <= count {
        out.extend_from_slice(&load_unaligned(from + done).to_le_bytes());
        done += WORD_BYTES;
    }
    out.extend((done..count).map(|i| word::load_byte(from + i)));
}

/// Writes the bytes of a slice.
pub fn write(to: usize, bytes: &[u8]) {
    let mut done = 0;
    if bytes.len() >= WORDS_FROM {
        while !(to + done).is_multiple_of(WORD_BYTES) {
            word::store_byte(to + done, bytes[done]);
            done += 1;
        }
        while let Some(chunk) = bytes[done..].first_chunk::<WORD_BYTES>() {
            word::publish(to + done, u64::from_le_bytes(*chunk));
            done += WORD_BYTES;
        }
    }
    for (i, &byte) in bytes[done..].iter().enumerate() {
        word::store_byte(to + done + i, byte);
    }
}

/// Fills `count` bytes.
pub fn fill(to: usize, count: usize, byte: u8) {
    let mut done = 0;
    if count >= WORDS_FROM {
        while !(to + done).is_multiple_of(WORD_BYTES) {
            word::store_byte(to + done, byte);
            done += 1;
        }
        while done + WORD_BYTES <= count {
            word::publish(to + done, u64::from_le_bytes([byte; WORD_BYTES]));
            done += WORD_BYTES;
        }
    }
    for i in done..count {
        word::store_byte(to + i, byte);
    }
}

/// Whether two ranges hold the same bytes.
pub fn same(a: usize, b: usize, count: usize) -> bool {
    let mut done = 0;
    while done + WORD_BYTES <= count {
        if load_unaligned(a + done) != load_unaligned(b + done) {
            return false;
        }
        done += WORD_BYTES;
    }
    (done..count).all(|i| word::load_byte(a + i) == word::load_byte(b + i))
}
