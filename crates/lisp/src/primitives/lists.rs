//! Pairs and lists.
//!
//! Every walk ends on circular lists: by Floyd's two fingers, or by a length measured first.

use super::Primitive;
use super::call::Call;
use crate::heap::Mutator;
use crate::raise::{Raise, Result};
use crate::thread::pause::{PART, parts};
use crate::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("cons", 2, |m, a| Ok(m.cons(a[0], a[1])?)),
    Primitive::exactly("%cons", 2, |m, a| Ok(m.cons(a[0], a[1])?)),
    Primitive::exactly("xcons", 2, |m, a| Ok(m.cons(a[1], a[0])?)),
    Primitive::exactly("set-car!", 2, set_car),
    Primitive::exactly("set-cdr!", 2, set_cdr),
    Primitive::exactly("pair?", 1, |_, a| Ok(Value::boolean(a[0].is_pair()))),
    Primitive::exactly("null?", 1, |_, a| Ok(Value::boolean(a[0].is_nil()))),
    Primitive::exactly("list?", 1, |m, a| Ok(Value::boolean(length(m, a[0])?.is_some()))),
    Primitive::exactly("proper-list?", 1, |m, a| Ok(Value::boolean(length(m, a[0])?.is_some()))),
    Primitive::at_least("list", 0, |m, a| Ok(m.list(a)?)),
    Primitive::at_least("cons*", 1, |m, a| Ok(m.list_onto(&a[..a.len() - 1], a[a.len() - 1])?)),
    Primitive::at_least("list*", 1, |m, a| Ok(m.list_onto(&a[..a.len() - 1], a[a.len() - 1])?)),
    Primitive::between("make-list", 1, 2, make_list),
    Primitive::exactly("length", 1, length_of),
    Primitive::exactly("length+", 1, |m, a| {
        Ok(length(m, a[0])?.map_or(Value::FALSE, |n| Value::fixnum(n as i64)))
    }),
    Primitive::at_least("append", 0, |m, a| append(m, "append", a)),
    Primitive::exactly("%append2", 2, |m, a| append(m, "append", a)),
    Primitive::exactly("reverse", 1, reverse),
    Primitive::exactly("list-tail", 2, |m, a| tail(m, "list-tail", a)),
    Primitive::exactly("list-ref", 2, list_ref),
    Primitive::exactly("list-set!", 3, list_set),
    Primitive::exactly("list-copy", 1, list_copy),
];

/// The length of a proper list; none for an improper or circular one.
///
/// # Errors
/// As [`Mutator::pause`] tells.
pub(crate) fn length(m: &mut Mutator, list: Value) -> Result<Option<usize>> {
    let mut fast = list;
    let mut slow = list;
    let mut count = 0;
    loop {
        for _ in 0..PART / 2 {
            for _ in 0..2 {
                match fast.cdr() {
                    Some(rest) => fast = rest,
                    None => return Ok(fast.is_nil().then_some(count)),
                }
                count += 1;
            }
            // Somebody may be cutting the list.
            let Some(next) = slow.cdr() else { return Ok(None) };
            slow = next;
            if fast == slow {
                return Ok(None);
            }
        }
        m.pause(&[fast, slow])?;
    }
}

/// A list being built from the front.
#[derive(Debug)]
pub(crate) struct Builder {
    head: Value,
    last: Value,
}

impl Builder {
    pub(crate) const fn new() -> Self {
        Self { head: Value::NIL, last: Value::NIL }
    }

    #[inline]
    pub(crate) fn push(&mut self, m: &mut Mutator, item: Value) -> Result<()> {
        let pair = m.cons(item, Value::NIL)?;
        self.link(pair);
        self.last = pair;
        Ok(())
    }

    fn link(&mut self, rest: Value) {
        // The last cell is a pair of our own, or there is none yet.
        if !self.last.set_cdr(rest) {
            self.head = rest;
        }
    }

    /// What a pause must hold to go on with it.
    pub(crate) fn held(&self) -> [Value; 2] {
        // The last cell too: what somebody else was given of the list may have been cut.
        [self.head, self.last]
    }

    pub(crate) fn finish(self) -> Value {
        self.head
    }

    /// The list, ending in `tail`.
    pub(crate) fn finish_with(mut self, tail: Value) -> Value {
        self.link(tail);
        self.head
    }
}

fn set_car(_: &mut Mutator, arguments: &[Value]) -> Result {
    if arguments[0].set_car(arguments[1]) {
        return Ok(Value::UNSPECIFIED);
    }
    Err(no_mutable_pair(Call::new("set-car!", arguments)))
}

fn set_cdr(_: &mut Mutator, arguments: &[Value]) -> Result {
    if arguments[0].set_cdr(arguments[1]) {
        return Ok(Value::UNSPECIFIED);
    }
    Err(no_mutable_pair(Call::new("set-cdr!", arguments)))
}

/// Argument 0 is no pair, or one of a literal.
#[cold]
fn no_mutable_pair(call: Call<'_>) -> Raise {
    call.wrong(0, if call.value(0).is_pair() { "mutable pair" } else { "pair" })
}

fn make_list(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("make-list", arguments);
    let count = call.count_at(0)?;
    let fill = call.optional(1).unwrap_or(Value::UNSPECIFIED);
    let mut list = Value::NIL;
    for part in parts(0..count) {
        for _ in part {
            list = m.cons(fill, list)?;
        }
        m.pause(&[list])?;
    }
    Ok(list)
}

fn length_of(m: &mut Mutator, arguments: &[Value]) -> Result {
    let count = Call::new("length", arguments).list_length(m, 0)?;
    Ok(Value::fixnum(count as i64))
}

/// Copies all lists but the last, which may be anything and is shared. Who calls keeps them.
pub(super) fn append(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let Some((&last, lists)) = arguments.split_last() else { return Ok(Value::NIL) };
    // All of them before the first is copied: a pause meanwhile would not know of the copy.
    let (one, several);
    let counts: &[usize] = if let [_] = lists {
        one = [call.list_length(m, 0)?];
        &one
    } else {
        several = (0..lists.len()).map(|i| call.list_length(m, i)).collect::<Result<Vec<_>>>()?;
        &several
    };
    let mut result = Builder::new();
    let mut copied = 0_usize;
    for (&list, &count) in lists.iter().zip(counts) {
        let mut rest = list;
        for _ in 0..count {
            let Some((car, cdr)) = rest.uncons() else { break };
            result.push(m, car)?;
            rest = cdr;
            copied += 1;
            if copied.is_multiple_of(PART) {
                let [head, end] = result.held();
                m.pause(&[head, end, rest])?;
            }
        }
    }
    Ok(result.finish_with(last))
}

fn reverse(m: &mut Mutator, arguments: &[Value]) -> Result {
    reverse_onto(m, Call::new("reverse", arguments), Value::NIL)
}

/// The elements of the list that argument 0 is, the last first, and then `result`, an argument too or no object.
pub(super) fn reverse_onto(m: &mut Mutator, call: Call<'_>, mut result: Value) -> Result {
    let count = call.list_length(m, 0)?;
    let mut rest = call.value(0);
    for part in parts(0..count) {
        for _ in part {
            let Some((car, cdr)) = rest.uncons() else { break };
            result = m.cons(car, result)?;
            rest = cdr;
        }
        m.pause(&[result, rest])?;
    }
    Ok(result)
}

/// Parts of a list that are stepped down before it is looked at for a cycle: no memory holds a list so much longer that
/// looking costs more than it saves.
const PARTS_BEFORE_CYCLE_CHECK: usize = 1 << 10;

/// Argument 0 without its first argument-1 elements.
pub(super) fn tail(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let count = call.count_at(1)?;
    let mut rest = arguments[0];
    for (number, part) in parts(0..count).enumerate() {
        for i in part {
            rest = rest.cdr().ok_or_else(|| too_short(call, i))?;
        }
        if number == PARTS_BEFORE_CYCLE_CHECK && length(m, rest)?.is_none() {
            return Err(call.wrong(0, "proper list"));
        }
        m.pause(&[rest])?;
    }
    Ok(rest)
}

#[cold]
fn too_short(call: Call<'_>, length: usize) -> Raise {
    call.outside(1, format!("the list has only {length} elements"))
}

fn list_ref(m: &mut Mutator, arguments: &[Value]) -> Result {
    let rest = tail(m, "list-ref", arguments)?;
    let call = Call::new("list-ref", arguments);
    rest.car().ok_or_else(|| too_short(call, call.count_at(1).unwrap_or(0)))
}

fn list_set(m: &mut Mutator, arguments: &[Value]) -> Result {
    let rest = tail(m, "list-set!", &arguments[..2])?;
    if rest.set_car(arguments[2]) {
        return Ok(Value::UNSPECIFIED);
    }
    let call = Call::new("list-set!", arguments);
    if rest.is_pair() {
        return Err(call.wrong(0, "mutable list"));
    }
    Err(too_short(call, call.count_at(1).unwrap_or(0)))
}

/// A copy of the spine; what is no pair at the end is shared, a circular list is refused.
fn list_copy(m: &mut Mutator, arguments: &[Value]) -> Result {
    let mut result = Builder::new();
    let mut slow = arguments[0];
    let mut rest = arguments[0];
    let mut count = 0_usize;
    while let Some((car, cdr)) = rest.uncons() {
        result.push(m, car)?;
        rest = cdr;
        count += 1;
        if count.is_multiple_of(2) {
            slow = slow.cdr().unwrap_or(Value::NIL);
            if slow == rest && rest.is_pair() {
                return Err(Call::new("list-copy", arguments).wrong(0, "list without a cycle"));
            }
        }
        if count.is_multiple_of(PART) {
            let [head, end] = result.held();
            m.pause(&[head, end, slow, rest])?;
        }
    }
    Ok(result.finish_with(rest))
}
