//! Comparison and case of strings.

use super::Primitive;
use super::call::Call;
use crate::heap::Mutator;
use crate::raise::Result;
use crate::text::fold;
use crate::value::Value;
use core::cmp::Ordering;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::at_least("string=?", 1, all_equal),
    Primitive::at_least("string<?", 1, |_, a| chain("string<?", a, |o| o == Ordering::Less)),
    Primitive::at_least("string>?", 1, |_, a| chain("string>?", a, |o| o == Ordering::Greater)),
    Primitive::at_least("string<=?", 1, |_, a| chain("string<=?", a, |o| o != Ordering::Greater)),
    Primitive::at_least("string>=?", 1, |_, a| chain("string>=?", a, |o| o != Ordering::Less)),
    Primitive::at_least("string-ci=?", 1, |_, a| {
        folded_chain("string-ci=?", a, |o| o == Ordering::Equal)
    }),
    Primitive::at_least("string-ci<?", 1, |_, a| {
        folded_chain("string-ci<?", a, |o| o == Ordering::Less)
    }),
    Primitive::at_least("string-ci>?", 1, |_, a| {
        folded_chain("string-ci>?", a, |o| o == Ordering::Greater)
    }),
    Primitive::at_least("string-ci<=?", 1, |_, a| {
        folded_chain("string-ci<=?", a, |o| o != Ordering::Greater)
    }),
    Primitive::at_least("string-ci>=?", 1, |_, a| {
        folded_chain("string-ci>=?", a, |o| o != Ordering::Less)
    }),
    Primitive::exactly("string-upcase", 1, |m, a| {
        mapped(m, "string-upcase", a, |text| text.to_uppercase())
    }),
    Primitive::exactly("string-downcase", 1, |m, a| {
        mapped(m, "string-downcase", a, |text| text.to_lowercase())
    }),
    Primitive::exactly("string-foldcase", 1, |m, a| mapped(m, "string-foldcase", a, fold::folded)),
];

fn all_equal(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string=?", arguments);
    let first = call.text(0)?;
    let mut result = true;
    for i in 1..arguments.len() {
        result &= first.same(call.text(i)?);
    }
    Ok(Value::boolean(result))
}

fn chain(who: &'static str, arguments: &[Value], holds: fn(Ordering) -> bool) -> Result {
    let call = Call::new(who, arguments);
    let mut result = true;
    let mut previous = call.text(0)?;
    for i in 1..arguments.len() {
        let next = call.text(i)?;
        result = result && holds(previous.chars().cmp(next.chars()));
        previous = next;
    }
    Ok(Value::boolean(result))
}

fn folded_chain(who: &'static str, arguments: &[Value], holds: fn(Ordering) -> bool) -> Result {
    let call = Call::new(who, arguments);
    let folded = |i| Ok::<_, crate::raise::Raise>(fold::folded(&call.string(i)?));
    let mut result = true;
    let mut previous = folded(0)?;
    for i in 1..arguments.len() {
        let next = folded(i)?;
        // UTF-8 sorts as its characters do.
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
    let text = Call::new(who, arguments).string(0)?;
    Ok(m.string(&map(&text))?)
}
