//! Bytevectors, and UTF-8.

use super::Primitive;
use super::call::Call;
use core::ops::Range;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::{FLAG_IMMUTABLE, Kind};
use kyocho_heap::heap::pause::{PART, parts, parts_of};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::text::{self, bytes};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("bytevector?", 1, |_, a| Ok(Value::boolean(a[0].is_kind(Kind::Bytevector)))),
    Primitive::between("make-bytevector", 1, 2, make_bytevector),
    Primitive::at_least("bytevector", 0, bytevector),
    Primitive::exactly("bytevector-length", 1, |_, a| {
        Ok(Value::fixnum(length(Call::new("bytevector-length", a), 0)? as i64))
    }),
    Primitive::exactly("bytevector-u8-ref", 2, byte_ref),
    Primitive::exactly("bytevector-u8-set!", 3, byte_set),
    Primitive::between("bytevector-copy", 1, 3, copy),
    Primitive::between("bytevector-copy!", 3, 5, copy_into),
    Primitive::between("bytevector-fill!", 2, 4, fill),
    Primitive::at_least("bytevector-append", 0, append),
    Primitive::between("utf8->string", 1, 3, utf8_to_string),
    Primitive::between("string->utf8", 1, 3, string_to_utf8),
];

/// Offset of the first byte in the payload; the length precedes it.
const BYTES_AT: usize = 8;

/// The address of a bytevector's first byte.
pub(super) fn address(bytevector: Value) -> usize {
    bytes::payload(bytevector) + BYTES_AT
}

pub(super) fn length(call: Call<'_>, i: usize) -> Result<usize> {
    call.value(i).bytevector_length().ok_or_else(|| call.wrong(i, "bytevector"))
}

/// The length of a mutable bytevector.
pub(super) fn mutable(call: Call<'_>, i: usize) -> Result<usize> {
    let length = length(call, i)?;
    if call.value(i).flags() & FLAG_IMMUTABLE == 0 {
        return Ok(length);
    }
    Err(call.wrong(i, "mutable bytevector"))
}

pub(super) fn byte(call: Call<'_>, i: usize) -> Result<u8> {
    let byte = call.value(i).as_fixnum().and_then(|n| u8::try_from(n).ok());
    byte.ok_or_else(|| call.wrong(i, "byte (exact integer from 0 to 255)"))
}

/// Bytes between two pauses.
const PART_BYTES: usize = PART * BYTES_AT;

/// The slices of a range of bytes.
fn byte_parts(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    parts_of(range, PART_BYTES)
}

/// A new bytevector of zeros.
fn zeros(m: &mut Mutator, length: usize) -> Result {
    let words = 1 + length.div_ceil(BYTES_AT);
    let bytevector = if words > PART {
        // The word of the fixnum 0 is eight bytes of zero.
        let new = m.begin(0, words)?;
        for part in parts(0..words) {
            Mutator::begin_words(new, part, Value::fixnum(0));
            m.pause(&[new])?;
        }
        Mutator::begin_words(new, 0..1, Value::fixnum(length as i64));
        Mutator::complete(new, Kind::Bytevector);
        new
    } else {
        let new = m.object(Kind::Bytevector, 0, words)?;
        new.set_field_at(0, Value::fixnum(length as i64));
        new
    };
    Ok(bytevector)
}

/// Copies bytes `range` of `from`, an argument, to `to` from index `at` on.
fn copy_parts(
    m: &mut Mutator,
    to: Value,
    at: usize,
    from: Value,
    range: Range<usize>,
) -> Result<()> {
    for part in byte_parts(range.clone()) {
        let start = address(to) + at + (part.start - range.start);
        bytes::copy(address(from) + part.start, start, part.len());
        m.pause(&[to])?;
    }
    Ok(())
}

fn make_bytevector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("make-bytevector", arguments);
    let length = call.count_at(0)?;
    let fill = if call.optional(1).is_some() { byte(call, 1)? } else { 0 };
    let bytevector = zeros(m, length)?;
    if fill != 0 {
        for part in byte_parts(0..length) {
            bytes::fill(address(bytevector) + part.start, part.len(), fill);
            m.pause(&[bytevector])?;
        }
    }
    Ok(bytevector)
}

fn bytevector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bytevector", arguments);
    let bytes: Result<Vec<u8>> = (0..arguments.len()).map(|i| byte(call, i)).collect();
    Ok(m.bytevector(&bytes?)?)
}

fn byte_ref(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bytevector-u8-ref", arguments);
    let i = call.index(1, length(call, 0)?)?;
    Ok(Value::fixnum(i64::from(arguments[0].byte_ref(i).unwrap_or(0))))
}

fn byte_set(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bytevector-u8-set!", arguments);
    let i = call.index(1, mutable(call, 0)?)?;
    let stored = arguments[0].byte_set(i, byte(call, 2)?);
    debug_assert!(stored, "the index was checked");
    Ok(Value::UNSPECIFIED)
}

/// A new bytevector with a range of the bytes of another.
fn slice(m: &mut Mutator, from: Value, range: Range<usize>) -> Result {
    let new = zeros(m, range.len())?;
    copy_parts(m, new, 0, from, range)?;
    Ok(new)
}

fn copy(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bytevector-copy", arguments);
    let range = call.range(1, length(call, 0)?)?;
    slice(m, arguments[0], range)
}

fn copy_into(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bytevector-copy!", arguments);
    let total = mutable(call, 0)?;
    let at = call.bound(1, 0, total)?;
    let range = call.range(3, length(call, 2)?)?;
    if range.len() > total - at {
        let (needed, room) = (range.len(), total - at);
        return Err(call.outside(1, format!("room for {needed} bytes, there is for {room}")));
    }
    let (to, from) = (arguments[0], arguments[2]);
    if to != from {
        copy_parts(m, to, at, from, range)?;
        return Ok(Value::UNSPECIFIED);
    }
    // Overlapping ranges are copied in the direction that reads each byte before it is overwritten.
    let backward = at > range.start;
    for part in byte_parts(0..range.len()) {
        let start = if backward { range.len() - part.end } else { part.start };
        bytes::copy(address(from) + range.start + start, address(to) + at + start, part.len());
        m.pause_midway()?;
    }
    Ok(Value::UNSPECIFIED)
}

fn fill(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bytevector-fill!", arguments);
    let length = mutable(call, 0)?;
    let byte = byte(call, 1)?;
    for part in byte_parts(call.range(2, length)?) {
        bytes::fill(address(arguments[0]) + part.start, part.len(), byte);
        m.pause(&[])?;
    }
    Ok(Value::UNSPECIFIED)
}

fn append(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bytevector-append", arguments);
    let mut total = 0;
    for i in 0..arguments.len() {
        total += length(call, i)?;
    }
    let result = zeros(m, total)?;
    let mut at = 0;
    for (i, &bytevector) in arguments.iter().enumerate() {
        let length = length(call, i)?;
        copy_parts(m, result, at, bytevector, 0..length)?;
        at += length;
    }
    Ok(result)
}

fn utf8_to_string(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("utf8->string", arguments);
    let range = call.range(1, length(call, 0)?)?;
    let mut encoded = Vec::with_capacity(range.len());
    for part in byte_parts(range.clone()) {
        bytes::read(&mut encoded, address(arguments[0]) + part.start, part.len());
        m.pause(&[])?;
    }
    match str::from_utf8(&encoded) {
        Ok(text) => text::new_in_parts(m, text),
        Err(error) => {
            let at = range.start + error.valid_up_to();
            let message = format!("utf8->string: not UTF-8 at index {at}");
            Err(Raise::error(message, vec![arguments[0]]))
        }
    }
}

fn string_to_utf8(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string->utf8", arguments);
    let text = call.text(0)?;
    let range = call.range(1, text.length())?;
    let encoded = text.to_rust_mapped(m, range, |part| part)?;
    let result = zeros(m, encoded.len())?;
    for part in byte_parts(0..encoded.len()) {
        bytes::write(address(result) + part.start, &encoded.as_bytes()[part]);
        m.pause(&[result])?;
    }
    Ok(result)
}
