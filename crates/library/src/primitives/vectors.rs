//! Vectors.

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use core::ops::Range;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::{FLAG_IMMUTABLE, Kind};
use kyocho_heap::heap::pause::parts;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("vector?", 1, |_, a| Ok(Value::boolean(a[0].is_kind(Kind::Vector)))),
    Primitive::between("make-vector", 1, 2, make_vector),
    Primitive::at_least("vector", 0, |m, a| Ok(m.vector_of(a)?)),
    Primitive::exactly("vector-length", 1, |_, a| {
        Ok(Value::fixnum(Call::new("vector-length", a).vector(0)? as i64))
    }),
    Primitive::exactly("vector-ref", 2, vector_ref),
    Primitive::exactly("vector-set!", 3, vector_set),
    Primitive::between("vector->list", 1, 3, to_list),
    Primitive::exactly("list->vector", 1, from_list),
    Primitive::exactly("%list->vector", 1, from_list),
    Primitive::between("vector-fill!", 2, 4, fill),
    Primitive::between("vector-copy", 1, 3, |m, a| copy(m, "vector-copy", a)),
    Primitive::between("subvector", 3, 3, |m, a| copy(m, "subvector", a)),
    Primitive::between("vector-copy!", 3, 5, copy_into),
    Primitive::at_least("vector-append", 0, append),
    Primitive::exactly("vector-grow", 2, grow),
    Primitive::exactly("vector-swap!", 3, swap),
    Primitive::between("vector-reverse!", 1, 3, reverse_in_place),
    Primitive::exactly("vector-empty?", 1, |_, a| {
        Ok(Value::boolean(Call::new("vector-empty?", a).vector(0)? == 0))
    }),
];

fn make_vector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("make-vector", arguments);
    m.vector_in_parts(call.count_at(0)?, call.optional(1).unwrap_or(Value::fixnum(0)))
}

/// Copies elements `range` of `from`, an argument, to `to` from index `at` on.
fn copy_parts(
    m: &mut Mutator,
    to: Value,
    at: usize,
    from: Value,
    range: Range<usize>,
) -> Result<()> {
    for part in parts(range.clone()) {
        for i in part {
            to.set_field_at(at + i - range.start, from.field_at(i));
        }
        m.pause(&[to])?;
    }
    Ok(())
}

fn vector_ref(_: &mut Mutator, arguments: &[Value]) -> Result {
    if let Some(element) = index(arguments).and_then(|i| arguments[0].vector_ref(i)) {
        return Ok(element);
    }
    let call = Call::new("vector-ref", arguments);
    call.index(1, call.vector(0)?)?;
    Err(call.wrong(0, "vector"))
}

fn index(arguments: &[Value]) -> Option<usize> {
    usize::try_from(arguments[1].as_fixnum()?).ok()
}

/// The length of a mutable vector.
fn mutable(call: Call<'_>, i: usize) -> Result<usize> {
    let length = call.vector(i)?;
    if call.value(i).flags() & FLAG_IMMUTABLE == 0 {
        return Ok(length);
    }
    Err(call.wrong(i, "mutable vector"))
}

fn vector_set(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-set!", arguments);
    let i = call.index(1, mutable(call, 0)?)?;
    arguments[0].set_field_at(i, arguments[2]);
    Ok(Value::UNSPECIFIED)
}

fn to_list(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector->list", arguments);
    let range = call.range(1, call.vector(0)?)?;
    let mut list = Builder::new();
    for part in parts(range) {
        for i in part {
            list.push(m, arguments[0].field_at(i))?;
        }
        let kept = m.pause_keeping(list.kept())?;
        list = Builder::of(kept.unrooted(m));
    }
    Ok(list.finish())
}

fn from_list(m: &mut Mutator, arguments: &[Value]) -> Result {
    let length = Call::new("list->vector", arguments).list_length(m, 0)?;
    let vector = m.vector_in_parts(length, Value::fixnum(0))?;
    let mut rest = arguments[0];
    for part in parts(0..length) {
        for i in part {
            // Another thread may have shortened the list.
            let Some((car, cdr)) = rest.uncons() else { break };
            vector.set_field_at(i, car);
            rest = cdr;
        }
        m.pause(&[vector, rest])?;
    }
    Ok(vector)
}

fn fill(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-fill!", arguments);
    for part in parts(call.range(2, mutable(call, 0)?)?) {
        part.for_each(|i| arguments[0].set_field_at(i, arguments[1]));
        m.pause(&[])?;
    }
    Ok(Value::UNSPECIFIED)
}

fn copy(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let range = call.range(1, call.vector(0)?)?;
    let vector = m.vector_in_parts(range.len(), Value::fixnum(0))?;
    copy_parts(m, vector, 0, arguments[0], range)?;
    Ok(vector)
}

fn copy_into(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-copy!", arguments);
    let length = mutable(call, 0)?;
    let at = call.bound(1, 0, length)?;
    let range = call.range(3, call.vector(2)?)?;
    if range.len() > length - at {
        let (needed, room) = (range.len(), length - at);
        return Err(call.outside(1, format!("room for {needed} elements, there is for {room}")));
    }
    let (to, from) = (arguments[0], arguments[2]);
    if to != from {
        copy_parts(m, to, at, from, range)?;
        return Ok(Value::UNSPECIFIED);
    }
    // Overlapping ranges are copied in the direction that reads each element before it is
    // overwritten.
    for part in parts(0..range.len()) {
        if at > range.start {
            for i in part {
                let i = range.len() - 1 - i;
                to.set_field_at(at + i, from.field_at(range.start + i));
            }
        } else {
            part.for_each(|i| to.set_field_at(at + i, from.field_at(range.start + i)));
        }
        m.pause_midway()?;
    }
    Ok(Value::UNSPECIFIED)
}

fn append(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-append", arguments);
    let mut length = 0;
    for i in 0..arguments.len() {
        length += call.vector(i)?;
    }
    let result = m.vector_in_parts(length, Value::fixnum(0))?;
    let mut at = 0;
    for &vector in arguments {
        copy_parts(m, result, at, vector, 0..vector.size_words())?;
        at += vector.size_words();
    }
    Ok(result)
}

fn grow(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-grow", arguments);
    let old = call.vector(0)?;
    let length = call.count_at(1)?;
    if length < old {
        return Err(call.outside(1, format!("{old} or more")));
    }
    let vector = m.vector_in_parts(length, Value::fixnum(0))?;
    copy_parts(m, vector, 0, arguments[0], 0..old)?;
    Ok(vector)
}

fn exchange(vector: Value, i: usize, j: usize) {
    let (x, y) = (vector.field_at(i), vector.field_at(j));
    vector.set_field_at(i, y);
    vector.set_field_at(j, x);
}

fn swap(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-swap!", arguments);
    let length = mutable(call, 0)?;
    exchange(arguments[0], call.index(1, length)?, call.index(2, length)?);
    Ok(Value::UNSPECIFIED)
}

fn reverse_in_place(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-reverse!", arguments);
    let range = call.range(1, mutable(call, 0)?)?;
    for part in parts(0..range.len() / 2) {
        part.for_each(|k| exchange(arguments[0], range.start + k, range.end - 1 - k));
        m.pause_midway()?;
    }
    Ok(Value::UNSPECIFIED)
}
