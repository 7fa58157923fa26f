//! Hashes: equal values have equal hashes, whatever the width of a string's buffer.

use crate::heap::object::Kind;
use crate::heap::word;
use crate::number::Number;
use crate::text::{Text, bytes};
use crate::value::Value;

/// Values looked at in one structure: what differs only beyond them collides, and cycles end.
const NODES_MAX: usize = 64;
/// An odd number without pattern (the golden ratio of 2^64).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER)
}

/// Spreads the entropy, which multiplying leaves in the high bits.
#[inline]
fn finish(hash: u64) -> u64 {
    hash ^ hash >> 32
}

/// The hash that goes with `eqv?`; with `eq?` too, where no numbers but fixnums are keys.
#[inline]
#[must_use]
pub fn eqv_hash(value: Value) -> u64 {
    if value.is_object() {
        return finish(number_hash(value).unwrap_or_else(|| mix(0, value.to_word())));
    }
    finish(mix(0, value.to_word()))
}

/// The hash of a number that is no fixnum.
fn number_hash(value: Value) -> Option<u64> {
    match value.kind()? {
        Kind::Flonum => Some(mix(1, value.payload_word(0))),
        Kind::Bignum => {
            let words = (0..value.size_words()).map(|i| value.payload_word(i));
            Some(words.fold(2, mix))
        }
        Kind::Ratio => {
            let Some(Number::Ratio(ratio)) = Number::of(value) else { return None };
            let digits = ratio.numer().iter_u64_digits().chain(ratio.denom().iter_u64_digits());
            Some(digits.fold(3, mix))
        }
        Kind::Complex => {
            Some(mix(mix(9, eqv_hash(value.field_at(0))), eqv_hash(value.field_at(1))))
        }
        _ => None,
    }
}

/// The hash of a string's characters.
#[must_use]
pub fn text_hash(text: Text) -> u64 {
    let length = text.length();
    let mut hash = mix(4, length as u64);
    if text.is_wide() {
        let mut at = 0;
        while at < length {
            let end = length.min(at + 8);
            hash = mix(hash, packed(text, at, end));
            at = end;
        }
        return finish(hash);
    }
    // The buffer begins on a word; it may hold more than its string has.
    let whole = length / 8;
    for i in 0..whole {
        hash = mix(hash, word::load(text.address() + 8 * i));
    }
    if !length.is_multiple_of(8) {
        let last = word::load(text.address() + 8 * whole);
        hash = mix(hash, last & ((1 << (8 * (length % 8))) - 1));
    }
    finish(hash)
}

/// Up to eight characters as a narrow buffer would hold them; wide ones folded in besides.
fn packed(text: Text, at: usize, end: usize) -> u64 {
    let mut word = 0;
    let mut wide = 0;
    for (i, c) in text.chars_in(at..end).enumerate() {
        word |= u64::from(u32::from(c) & 0xff) << (8 * i);
        if c > '\u{ff}' {
            wide = mix(wide + i as u64, u64::from(c));
        }
    }
    word ^ wide
}

/// The hash that goes with `equal?`.
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

/// The hash of one value; puts what it holds on `open`.
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
            let mut first = Vec::new();
            bytes::read(&mut first, bytes::payload(value) + 8, length.min(8 * NODES_MAX));
            first.iter().fold(mix(8, length as u64), |hash, &byte| mix(hash, u64::from(byte)))
        }
        _ => eqv_hash(value),
    }
}
