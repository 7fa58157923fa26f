//! Vectors.

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use crate::heap::Mutator;
use crate::heap::object::{FLAG_IMMUTABLE, Kind};
use crate::raise::Result;
use crate::value::Value;

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
    let length = call.count_at(0)?;
    Ok(m.vector(length, call.optional(1).unwrap_or(Value::fixnum(0)))?)
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

/// The length of a vector that may be written.
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
    for i in range {
        list.push(m, arguments[0].field_at(i))?;
    }
    Ok(list.finish())
}

fn from_list(m: &mut Mutator, arguments: &[Value]) -> Result {
    let items = Call::new("list->vector", arguments).list(0)?;
    Ok(m.vector_of(&items)?)
}

fn fill(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-fill!", arguments);
    for i in call.range(2, mutable(call, 0)?)? {
        arguments[0].set_field_at(i, arguments[1]);
    }
    Ok(Value::UNSPECIFIED)
}

fn copy(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let range = call.range(1, call.vector(0)?)?;
    let vector = m.vector(range.len(), Value::fixnum(0))?;
    for (to, from) in range.enumerate() {
        vector.set_field_at(to, arguments[0].field_at(from));
    }
    Ok(vector)
}

fn copy_into(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-copy!", arguments);
    let length = mutable(call, 0)?;
    let at = call.bound(1, 0, length)?;
    let range = call.range(3, call.vector(2)?)?;
    if range.len() > length - at {
        let (needed, room) = (range.len(), length - at);
        return Err(call.outside(1, format!("room for {needed} elements, there is for {room}")));
    }
    let (to, from) = (arguments[0], arguments[2]);
    if to == from && at > range.start {
        for i in (0..range.len()).rev() {
            to.set_field_at(at + i, from.field_at(range.start + i));
        }
    } else {
        for i in 0..range.len() {
            to.set_field_at(at + i, from.field_at(range.start + i));
        }
    }
    Ok(Value::UNSPECIFIED)
}

fn append(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-append", arguments);
    let mut length = 0;
    for i in 0..arguments.len() {
        length += call.vector(i)?;
    }
    let result = m.vector(length, Value::fixnum(0))?;
    let mut at = 0;
    for &vector in arguments {
        for i in 0..vector.size_words() {
            result.set_field_at(at, vector.field_at(i));
            at += 1;
        }
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
    let vector = m.vector(length, Value::fixnum(0))?;
    for i in 0..old {
        vector.set_field_at(i, arguments[0].field_at(i));
    }
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

fn reverse_in_place(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("vector-reverse!", arguments);
    let range = call.range(1, mutable(call, 0)?)?;
    for k in 0..range.len() / 2 {
        exchange(arguments[0], range.start + k, range.end - 1 - k);
    }
    Ok(Value::UNSPECIFIED)
}
