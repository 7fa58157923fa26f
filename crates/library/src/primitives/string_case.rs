//! Comparison and case of strings.

use super::Primitive;
use super::call::Call;
use core::cmp::Ordering;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::pause::{PART, parts};
use kyocho_heap::raise::Result;
use kyocho_heap::text::{self, Text, fold};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::at_least("string=?", 1, all_equal),
    Primitive::at_least("string<?", 1, |m, a| chain(m, "string<?", a, |o| o == Ordering::Less)),
    Primitive::at_least("string>?", 1, |m, a| chain(m, "string>?", a, |o| o == Ordering::Greater)),
    Primitive::at_least("string<=?", 1, |m, a| {
        chain(m, "string<=?", a, |o| o != Ordering::Greater)
    }),
    Primitive::at_least("string>=?", 1, |m, a| chain(m, "string>=?", a, |o| o != Ordering::Less)),
    Primitive::at_least("string-ci=?", 1, |m, a| {
        folded_chain(m, "string-ci=?", a, |o| o == Ordering::Equal)
    }),
    Primitive::at_least("string-ci<?", 1, |m, a| {
        folded_chain(m, "string-ci<?", a, |o| o == Ordering::Less)
    }),
    Primitive::at_least("string-ci>?", 1, |m, a| {
        folded_chain(m, "string-ci>?", a, |o| o == Ordering::Greater)
    }),
    Primitive::at_least("string-ci<=?", 1, |m, a| {
        folded_chain(m, "string-ci<=?", a, |o| o != Ordering::Greater)
    }),
    Primitive::at_least("string-ci>=?", 1, |m, a| {
        folded_chain(m, "string-ci>=?", a, |o| o != Ordering::Less)
    }),
    Primitive::exactly("string-upcase", 1, |m, a| {
        mapped(m, "string-upcase", a, |text| text.to_uppercase())
    }),
    Primitive::exactly("string-downcase", 1, |m, a| {
        mapped(m, "string-downcase", a, |text| text.to_lowercase())
    }),
    Primitive::exactly("string-foldcase", 1, |m, a| mapped(m, "string-foldcase", a, fold::folded)),
];

fn all_equal(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string=?", arguments);
    let first = call.text(0)?;
    let mut result = true;
    for i in 1..arguments.len() {
        let other = call.text(i)?;
        result &= first.length() == other.length();
        if !result {
            continue;
        }
        for part in parts(0..first.length()) {
            let is_whole = part.len() == PART;
            result &= first.same_in(other, part);
            if !result {
                break;
            }
            if is_whole {
                m.pause(&[first.held(), other.held()])?;
            }
        }
    }
    Ok(Value::boolean(result))
}

fn chain(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    holds: fn(Ordering) -> bool,
) -> Result {
    let call = Call::new(who, arguments);
    let mut result = true;
    let mut previous = call.text(0)?;
    for i in 1..arguments.len() {
        let next = call.text(i)?;
        result = result && holds(compare(m, previous, next)?);
        previous = next;
    }
    Ok(Value::boolean(result))
}

fn compare(m: &mut Mutator, a: Text, b: Text) -> Result<Ordering> {
    for part in parts(0..a.length().min(b.length())) {
        let order = a.chars_in(part.clone()).cmp(b.chars_in(part));
        if order.is_ne() {
            return Ok(order);
        }
        m.pause(&[a.held(), b.held()])?;
    }
    Ok(a.length().cmp(&b.length()))
}

fn folded_chain(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    holds: fn(Ordering) -> bool,
) -> Result {
    let call = Call::new(who, arguments);
    let mut folded = |i| -> Result<String> {
        let text = call.text(i)?;
        text.to_rust_mapped(m, 0..text.length(), |part| fold::folded(&part))
    };
    let mut result = true;
    let mut previous = folded(0)?;
    for i in 1..arguments.len() {
        let next = folded(i)?;
        // UTF-8 is ordered like its characters.
        result = result && holds(previous.cmp(&next));
        previous = next;
    }
    Ok(Value::boolean(result))
}

fn mapped(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    map: fn(&str) -> String,
) -> Result {
    let text = Call::new(who, arguments).text(0)?;
    // The lowercase form of a capital sigma depends on the next character.
    let is_by_part = text.length() > PART && !text.contains(m, 'Σ')?;
    let mapped = if is_by_part {
        text.to_rust_mapped(m, 0..text.length(), |part| map(&part))?
    } else {
        map(&text.to_rust_in_parts(m)?)
    };
    text::new_in_parts(m, &mapped)
}
