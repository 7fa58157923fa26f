//! Pairs and lists.
//!
//! Every walk terminates on circular lists: by Floyd's cycle detection, or because the length is
//! measured first.

use super::Primitive;
use super::call::Call;
use super::list_length::length;
use kyocho_heap::heap::pause::{PART, parts};
use kyocho_heap::heap::{Kept, Mutator, Unrooted};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;

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

/// Builds a list from the front. Valid only between two pauses, which must keep it.
#[derive(Debug)]
pub(crate) struct Builder<'m> {
    head: Unrooted<'m>,
    last: Unrooted<'m>,
}

impl<'m> Builder<'m> {
    pub(crate) const fn new() -> Self {
        Self { head: Unrooted::NIL, last: Unrooted::NIL }
    }

    #[inline]
    pub(crate) fn push(&mut self, m: &'m Mutator, item: Value) -> Result<()> {
        let pair = m.unrooted(m.cons(item, Value::NIL)?);
        self.link(pair);
        self.last = pair;
        Ok(())
    }

    fn link(&mut self, rest: Unrooted<'m>) {
        // The last cell is a mutable pair made here, or there is none yet.
        if !self.last.value().set_cdr(rest.value()) {
            self.head = rest;
        }
    }

    /// The values that a pause must keep.
    pub(crate) fn kept(&self) -> [Kept; 2] {
        // The last cell is kept too, because another thread may have cut the list before it.
        [self.head.kept(), self.last.kept()]
    }

    /// Continues with the values that a pause has kept.
    pub(crate) const fn of([head, last]: [Unrooted<'m>; 2]) -> Self {
        Self { head, last }
    }

    pub(crate) fn finish(self) -> Value {
        self.head.value()
    }

    /// The list, with `tail` after its last element.
    pub(crate) fn finish_with(mut self, tail: Unrooted<'m>) -> Value {
        self.link(tail);
        self.finish()
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

/// The error for argument 0 that is not a mutable pair.
#[cold]
fn no_mutable_pair(call: Call<'_>) -> Raise {
    call.wrong(0, if call.value(0).is_pair() { "mutable pair" } else { "pair" })
}

fn make_list(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("make-list", arguments);
    let count = call.count_at(0)?;
    let fill = call.optional(1).unwrap_or(Value::UNSPECIFIED);
    let mut list = Unrooted::NIL;
    for part in parts(0..count) {
        for _ in part {
            list = m.unrooted(m.cons(fill, list.value())?);
        }
        let kept = m.pause_keeping([list.kept()])?;
        [list] = kept.unrooted(m);
    }
    Ok(list.value())
}

fn length_of(m: &mut Mutator, arguments: &[Value]) -> Result {
    let count = Call::new("length", arguments).list_length(m, 0)?;
    Ok(Value::fixnum(count as i64))
}

/// Copies all lists but the last, which may be any object and is shared. The caller keeps the lists
/// alive.
pub(super) fn append(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let Some((&last, lists)) = arguments.split_last() else { return Ok(Value::NIL) };
    // All lengths are measured before the first copy, because the pauses in between would not keep
    // the copy alive.
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
        let mut rest = m.unrooted(list);
        for _ in 0..count {
            let Some((car, cdr)) = rest.uncons() else { break };
            result.push(m, car.value())?;
            rest = cdr;
            copied += 1;
            if copied.is_multiple_of(PART) {
                let [head, end] = result.kept();
                let kept = m.pause_keeping([head, end, rest.kept()])?;
                let [head, end, after] = kept.unrooted(m);
                (result, rest) = (Builder::of([head, end]), after);
            }
        }
    }
    Ok(result.finish_with(m.unrooted(last)))
}

fn reverse(m: &mut Mutator, arguments: &[Value]) -> Result {
    reverse_onto(m, Call::new("reverse", arguments), Value::NIL)
}

/// The elements of the list in argument 0, the last first, followed by `result`, which is an
/// argument or not an object.
pub(super) fn reverse_onto(m: &mut Mutator, call: Call<'_>, result: Value) -> Result {
    let count = call.list_length(m, 0)?;
    let [mut result, mut rest] = [m.unrooted(result), m.unrooted(call.value(0))];
    for part in parts(0..count) {
        for _ in part {
            let Some((car, cdr)) = rest.uncons() else { break };
            result = m.unrooted(m.cons(car.value(), result.value())?);
            rest = cdr;
        }
        let kept = m.pause_keeping([result.kept(), rest.kept()])?;
        [result, rest] = kept.unrooted(m);
    }
    Ok(result.value())
}

/// Parts of a list to walk before it is checked for a cycle. No memory could contain so long a list
/// that the check would not pay.
const fn parts_before_cycle_check() -> usize {
    if cfg!(test) { 2 } else { 1 << 10 }
}

/// Argument 0 without its first argument-1 elements.
pub(super) fn tail(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let count = call.count_at(1)?;
    let mut rest = m.unrooted(arguments[0]);
    for (number, part) in parts(0..count).enumerate() {
        for i in part {
            rest = rest.cdr().ok_or_else(|| too_short(call, i))?;
        }
        // Measured from the argument, which the frame keeps, because the part ahead may be cut off
        // meanwhile.
        let kept = [rest.kept()];
        let kept = if number == parts_before_cycle_check() {
            let (kept, length) = m.keeping_over(kept, |m| length(m, arguments[0]))?;
            length.ok_or_else(|| call.wrong(0, "proper list"))?;
            kept
        } else {
            m.pause_keeping(kept)?
        };
        [rest] = kept.unrooted(m);
    }
    Ok(rest.value())
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

/// A copy of the list's pairs. A final object that is not a pair is shared; a circular list is
/// refused.
fn list_copy(m: &mut Mutator, arguments: &[Value]) -> Result {
    let mut result = Builder::new();
    let [mut slow, mut rest] = [m.unrooted(arguments[0]); 2];
    let mut count = 0_usize;
    while let Some((car, cdr)) = rest.uncons() {
        result.push(m, car.value())?;
        rest = cdr;
        count += 1;
        if count.is_multiple_of(2) {
            slow = slow.cdr().unwrap_or(Unrooted::NIL);
            if slow == rest && rest.value().is_pair() {
                return Err(Call::new("list-copy", arguments).wrong(0, "list without a cycle"));
            }
        }
        if count.is_multiple_of(PART) {
            let [head, end] = result.kept();
            let kept = m.pause_keeping([head, end, slow.kept(), rest.kept()])?;
            let [head, end, behind, after] = kept.unrooted(m);
            (result, slow, rest) = (Builder::of([head, end]), behind, after);
        }
    }
    Ok(result.finish_with(rest))
}
