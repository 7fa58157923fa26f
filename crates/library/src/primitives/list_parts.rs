//! Parts of lists: the `c...r` family, and SRFI 1's selectors without procedure arguments.

use super::Primitive;
use super::call::Call;
use super::lists::{Builder, append, reverse_onto, tail};
use kyocho_heap::heap::pause::{PART, parts};
use kyocho_heap::heap::{Mutator, Unrooted};
use kyocho_heap::number;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

/// A primitive that applies the letters of its name from the right.
macro_rules! path {
    ($name:literal) => {
        Primitive::exactly($name, 1, |_, a| follow($name, a))
    };
}

pub(super) const TABLE: &[Primitive] = &[
    path!("car"),
    path!("cdr"),
    path!("caar"),
    path!("cadr"),
    path!("cdar"),
    path!("cddr"),
    path!("caaar"),
    path!("caadr"),
    path!("cadar"),
    path!("caddr"),
    path!("cdaar"),
    path!("cdadr"),
    path!("cddar"),
    path!("cdddr"),
    path!("caaaar"),
    path!("caaadr"),
    path!("caadar"),
    path!("caaddr"),
    path!("cadaar"),
    path!("cadadr"),
    path!("caddar"),
    path!("cadddr"),
    path!("cdaaar"),
    path!("cdaadr"),
    path!("cdadar"),
    path!("cdaddr"),
    path!("cddaar"),
    path!("cddadr"),
    path!("cdddar"),
    path!("cddddr"),
    Primitive::exactly("first", 1, |_, a| nth("first", a, 0)),
    Primitive::exactly("second", 1, |_, a| nth("second", a, 1)),
    Primitive::exactly("third", 1, |_, a| nth("third", a, 2)),
    Primitive::exactly("fourth", 1, |_, a| nth("fourth", a, 3)),
    Primitive::exactly("fifth", 1, |_, a| nth("fifth", a, 4)),
    Primitive::exactly("sixth", 1, |_, a| nth("sixth", a, 5)),
    Primitive::exactly("seventh", 1, |_, a| nth("seventh", a, 6)),
    Primitive::exactly("eighth", 1, |_, a| nth("eighth", a, 7)),
    Primitive::exactly("ninth", 1, |_, a| nth("ninth", a, 8)),
    Primitive::exactly("tenth", 1, |_, a| nth("tenth", a, 9)),
    Primitive::exactly("last-pair", 1, last_pair),
    Primitive::exactly("last", 1, last),
    Primitive::exactly("take", 2, |m, a| take(m, "take", a)),
    Primitive::exactly("list-head", 2, |m, a| take(m, "list-head", a)),
    Primitive::exactly("drop", 2, |m, a| tail(m, "drop", a)),
    Primitive::exactly("take-right", 2, take_right),
    Primitive::exactly("drop-right", 2, drop_right),
    Primitive::exactly("append-reverse", 2, append_reverse),
    Primitive::exactly("append-reverse!", 2, append_reverse),
    Primitive::exactly("concatenate", 1, concatenate),
    Primitive::between("iota", 1, 3, iota),
    Primitive::exactly("dotted-list?", 1, |m, a| {
        Ok(Value::boolean(shape(m, a[0])? == Shape::Dotted))
    }),
    Primitive::exactly("circular-list?", 1, |m, a| {
        Ok(Value::boolean(shape(m, a[0])? == Shape::Circular))
    }),
    Primitive::exactly("not-pair?", 1, |_, a| Ok(Value::boolean(!a[0].is_pair()))),
];

fn follow(who: &'static str, arguments: &[Value]) -> Result {
    let mut value = arguments[0];
    for letter in who[1..who.len() - 1].bytes().rev() {
        let next = if letter == b'a' { value.car() } else { value.cdr() };
        value = next.ok_or_else(|| wrong_shape(who, arguments))?;
    }
    Ok(value)
}

#[cold]
fn wrong_shape(who: &'static str, arguments: &[Value]) -> kyocho_heap::raise::Raise {
    let expected = if who.len() == 3 { "pair" } else { "list structure deep enough" };
    Call::new(who, arguments).wrong(0, expected)
}

fn nth(who: &'static str, arguments: &[Value], n: usize) -> Result {
    let mut rest = Some(arguments[0]);
    for _ in 0..n {
        rest = rest.and_then(Value::cdr);
    }
    let element = rest.and_then(Value::car);
    element.ok_or_else(|| Call::new(who, arguments).wrong(0, "list long enough"))
}

#[derive(PartialEq, Eq)]
enum Shape {
    Proper,
    Dotted,
    Circular,
}

fn shape(m: &mut Mutator, list: Value) -> Result<Shape> {
    let [mut slow, mut fast] = [m.unrooted(list); 2];
    loop {
        for _ in 0..PART / 2 {
            for _ in 0..2 {
                match fast.cdr() {
                    Some(rest) => fast = rest,
                    None if fast.value().is_nil() => return Ok(Shape::Proper),
                    None => return Ok(Shape::Dotted),
                }
            }
            slow = slow.cdr().unwrap_or(Unrooted::NIL);
            if slow == fast {
                return Ok(Shape::Circular);
            }
        }
        let kept = m.pause_keeping([slow.kept(), fast.kept()])?;
        [slow, fast] = kept.unrooted(m);
    }
}

/// The pairs of a list that is not circular. A [pause](kyocho_heap::heap::pause) that follows must
/// keep them.
fn pairs(m: &mut Mutator, call: Call<'_>) -> Result<Vec<Value>> {
    if shape(m, call.value(0))? == Shape::Circular {
        return Err(call.wrong(0, "list without a cycle"));
    }
    let mut pairs = Vec::new();
    let mut rest = call.value(0);
    while let Some(next) = rest.cdr() {
        pairs.push(rest);
        rest = next;
        if pairs.len().is_multiple_of(PART) {
            pairs.push(rest);
            m.pause_with(&mut pairs)?;
            pairs.pop();
        }
    }
    Ok(pairs)
}

fn last_pair(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("last-pair", arguments);
    pairs(m, call)?.pop().ok_or_else(|| call.wrong(0, "pair"))
}

fn last(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("last", arguments);
    pairs(m, call)?.pop().and_then(Value::car).ok_or_else(|| call.wrong(0, "pair"))
}

fn take(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let count = call.count_at(1)?;
    let mut result = Builder::new();
    let mut rest = m.unrooted(arguments[0]);
    for part in parts(0..count) {
        for i in part {
            let Some((car, cdr)) = rest.uncons() else {
                return Err(call.outside(1, format!("the list has only {i} elements")));
            };
            result.push(m, car.value())?;
            rest = cdr;
        }
        let [head, end] = result.kept();
        let kept = m.pause_keeping([head, end, rest.kept()])?;
        let [head, end, after] = kept.unrooted(m);
        (result, rest) = (Builder::of([head, end]), after);
    }
    Ok(result.finish())
}

/// The index, among the pairs of argument 0, where the last argument-1 elements begin.
fn from_right(call: Call<'_>, length: usize) -> Result<usize> {
    let count = call.bound(1, 0, length)?;
    Ok(length - count)
}

fn take_right(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("take-right", arguments);
    let pairs = pairs(m, call)?;
    let start = from_right(call, pairs.len())?;
    match pairs.get(start) {
        Some(&pair) => Ok(pair),
        None => Ok(pairs.last().and_then(|pair| pair.cdr()).unwrap_or(arguments[0])),
    }
}

fn drop_right(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("drop-right", arguments);
    let mut pairs = pairs(m, call)?;
    pairs.truncate(from_right(call, pairs.len())?);
    let mut result = Builder::new();
    for part in parts(0..pairs.len()) {
        for i in part {
            result.push(m, pairs[i].car().unwrap_or(Value::NIL))?;
        }
        let kept = result.kept();
        let (kept, ()) = m.keeping_over(kept, |m| m.pause_with(&mut pairs))?;
        result = Builder::of(kept.unrooted(m));
    }
    Ok(result.finish())
}

fn append_reverse(m: &mut Mutator, arguments: &[Value]) -> Result {
    reverse_onto(m, Call::new("append-reverse", arguments), arguments[1])
}

fn concatenate(m: &mut Mutator, arguments: &[Value]) -> Result {
    let lists = Call::new("concatenate", arguments).list(m, 0)?;
    // Another thread may remove them from the list that contains them.
    m.keeping(&lists, |m| append(m, "concatenate", &lists))
}

/// `(iota count [start [step]])`. Each element is start + i * step rather than a running sum, so
/// errors of flonums do not accumulate.
fn iota(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("iota", arguments);
    let count = call.count_at(0)?;
    let start = call.optional(1).unwrap_or(Value::fixnum(0));
    let step = call.optional(2).unwrap_or(Value::fixnum(1));
    let mut result = Builder::new();
    for part in parts(0..count) {
        for i in part {
            let (kept, element) = m.keeping_over(result.kept(), |m| {
                let distance = number::mul(m, Value::fixnum(i as i64), step)?;
                number::add(m, start, distance)
            })?;
            result = Builder::of(kept.unrooted(m));
            result.push(m, element)?;
        }
        let kept = m.pause_keeping(result.kept())?;
        result = Builder::of(kept.unrooted(m));
    }
    Ok(result.finish())
}
