//! Hashes: equal values have equal hashes, whatever the character width of a string's buffer.
//!
//! Numbers beyond a word, strings and bytevectors are hashed completely, with a key that each
//! process draws at its start (`SipHash` of the standard library). So an attacker cannot construct
//! collisions. Two different such values have the same hash only by chance.

use crate::heap::object::Kind;
use crate::heap::word;
use crate::number::Number;
use crate::text::{Text, bytes};
use crate::value::Value;
use core::hash::{BuildHasher, Hasher};
use std::hash::{DefaultHasher, RandomState};
use std::sync::LazyLock;

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
/// Bytes hashed in one step.
const CHUNK_BYTES: usize = 64;

/// Maximum number of values of one structure that are hashed. Structures that differ only beyond
/// them collide; cycles end.
const NODES_MAX: usize = 64;
/// An odd number without a pattern: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER)
}

/// Mixes the bits. Multiplication leaves the entropy in the high bits.
#[inline]
fn finish(hash: u64) -> u64 {
    hash ^ hash >> 32
}

/// The hash for `eqv?`. It serves `eq?` too, because identical values have equal hashes.
#[inline]
#[must_use]
pub fn eqv_hash(value: Value) -> u64 {
    if value.is_object() {
        return finish(number_hash(value).unwrap_or_else(|| mix(0, value.to_word())));
    }
    finish(mix(0, value.to_word()))
}

/// The hash of a number that is not a fixnum.
fn number_hash(value: Value) -> Option<u64> {
    match value.kind()? {
        Kind::Flonum => Some(mix(1, value.payload_word(0))),
        Kind::Bignum => {
            let words = (0..value.size_words()).map(|i| value.payload_word(i));
            Some(keyed(2, words))
        }
        Kind::Ratio => {
            let Some(Number::Ratio(ratio)) = Number::of(value) else { return None };
            let digits = ratio.numer().iter_u64_digits().chain(ratio.denom().iter_u64_digits());
            Some(keyed(3, digits))
        }
        Kind::Complex => {
            Some(mix(mix(9, eqv_hash(value.field_at(0))), eqv_hash(value.field_at(1))))
        }
        _ => None,
    }
}

/// A hasher for an object of this kind (`tag`) and length.
fn hasher(tag: u8, length: usize) -> DefaultHasher {
    let mut hasher = KEY.build_hasher();
    hasher.write_u8(tag);
    hasher.write_usize(length);
    hasher
}

/// The hash of the digits of a number.
fn keyed(tag: u8, words: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = hasher(tag, 0);
    words.for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

/// Hashes `length` bytes of a buffer that starts at a word boundary and may be longer.
fn write_bytes(hasher: &mut DefaultHasher, address: usize, length: usize) {
    let mut at = 0;
    while at < length {
        let mut chunk = [0; CHUNK_BYTES];
        let count = CHUNK_BYTES.min(length - at);
        for (i, word) in chunk.chunks_exact_mut(8).take(count.div_ceil(8)).enumerate() {
            word.copy_from_slice(&word::load(address + at + 8 * i).to_le_bytes());
        }
        hasher.write(&chunk[..count]);
        at += count;
    }
}

/// The hash of a string's characters.
#[must_use]
pub fn text_hash(text: Text) -> u64 {
    let length = text.length();
    let mut hasher = hasher(4, length);
    if text.is_wide() {
        write_wide(&mut hasher, text);
    } else {
        write_bytes(&mut hasher, text.address(), length);
    }
    hasher.finish()
}

/// Hashes a wide string: first the low bytes, as for a narrow string; then the other bytes, if any
/// is not zero.
fn write_wide(hasher: &mut DefaultHasher, text: Text) {
    let length = text.length();
    for at in (0..length).step_by(CHUNK_BYTES) {
        let mut chunk = [0; CHUNK_BYTES];
        let count = CHUNK_BYTES.min(length - at);
        for (byte, c) in chunk.iter_mut().zip(text.chars_in(at..at + count)) {
            *byte = u32::from(c) as u8;
        }
        hasher.write(&chunk[..count]);
    }
    for (i, c) in text.chars_in(0..length).enumerate().filter(|&(_, c)| c > '\u{ff}') {
        hasher.write_usize(i);
        hasher.write_u32(u32::from(c));
    }
}

/// The hash for `equal?`.
#[must_use]
pub fn equal_hash(value: Value) -> u64 {
    if let Some(text) = Text::of(value) {
        return text_hash(text);
    }
    if !value.is_pair() && !value.is_object() {
        return eqv_hash(value);
    }
    let mut hash = 5;
    let mut open = vec![value];
    let mut nodes = 0;
    while let Some(value) = open.pop() {
        nodes += 1;
        if nodes > NODES_MAX {
            break;
        }
        hash = mix(hash, node_hash(value, &mut open));
    }
    finish(hash)
}

/// The hash of one value. Its parts are put on `open`.
fn node_hash(value: Value, open: &mut Vec<Value>) -> u64 {
    if let Some((car, cdr)) = value.uncons() {
        open.push(cdr);
        open.push(car);
        return 6;
    }
    if let Some(text) = Text::of(value) {
        return text_hash(text);
    }
    match value.kind() {
        Some(Kind::Vector) => {
            let length = value.size_words();
            open.extend((0..length.min(NODES_MAX)).rev().map(|i| value.field_at(i)));
            mix(7, length as u64)
        }
        Some(Kind::Bytevector) => {
            let length = value.bytevector_length().unwrap_or(0);
            let mut hasher = hasher(8, length);
            write_bytes(&mut hasher, bytes::payload(value) + 8, length);
            hasher.finish()
        }
        _ => eqv_hash(value),
    }
}
