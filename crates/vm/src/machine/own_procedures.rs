//! The machine's own control procedures: calls, several values, continuations, the dynamic state.

use crate::machine::access::Frame;
use crate::machine::control::{Control, Procedure};
use crate::machine::{Exit, Machine};
use kyocho_heap::heap::Kind;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Procedure] = &[
    Procedure::new("apply", 1, None, apply),
    Procedure::new("call-with-current-continuation", 1, Some(1), call_cc),
    Procedure::new("call/cc", 1, Some(1), call_cc),
    Procedure::new("values", 0, None, values),
    Procedure::new("%values", 0, None, values),
    Procedure::new("%apply-values", 2, Some(2), apply_values),
    Procedure::new("%winders", 0, Some(0), |m, _, _| Ok(Control::Value(m.mutator.context.winders))),
    Procedure::new("%set-winders!", 1, Some(1), |m, frame, _| {
        m.mutator.context.winders = frame.get(0);
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("%handlers", 0, Some(0), |m, _, _| {
        Ok(Control::Value(m.mutator.context.handlers))
    }),
    Procedure::new("%set-handlers!", 1, Some(1), |m, frame, _| {
        m.mutator.context.handlers = frame.get(0);
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("%parameters", 0, Some(0), |m, _, _| {
        Ok(Control::Value(m.mutator.context.parameters))
    }),
    Procedure::new("%set-parameters!", 1, Some(1), |m, frame, _| {
        m.mutator.context.parameters = frame.get(0);
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("%continuation-winders", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(frame.get(0).field_at(4)))
    }),
    Procedure::new("%reinstate", 2, Some(2), |m, frame, _| {
        Ok(Control::Go(m.reinstate(frame.get(0), frame.get(1))))
    }),
    Procedure::new("%splice", 3, Some(3), |m, frame, _| {
        let (base, end, thunk) = (frame.get(0), frame.get(1), frame.get(2));
        let bottom = m.splice(frame, base, end)?;
        bottom.set_value(-1, thunk);
        Ok(Control::Call(bottom, 0))
    }),
    Procedure::new("%uncaught", 1, Some(1), |m, frame, _| {
        m.finish_as(frame.get(0));
        Ok(Control::Stop(Exit::Uncaught))
    }),
];

/// `(apply f x ... list)`.
fn apply(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let procedure = frame.get(0);
    if count == 1 {
        frame.set_value(-1, procedure);
        return Ok(Control::Call(frame, 0));
    }
    let list = frame.value(count as isize - 1);
    let mut length = 0;
    let mut rest = list;
    while let Some(next) = rest.cdr() {
        length += 1;
        rest = next;
        if length > ARGUMENTS_MAX {
            let message = format!("apply: more than {ARGUMENTS_MAX} arguments, or a circular list");
            return Err(Raise::error(message, Vec::new()));
        }
    }
    if !rest.is_nil() {
        return Err(Raise::wrong_type("apply", count, "list", list));
    }
    let frame = machine.grow(frame, count + length)?;
    frame.set_value(-1, procedure);
    for slot in 1..count as isize - 1 {
        frame.set_value(slot - 1, frame.value(slot));
    }
    Ok(Control::Call(frame, spread(frame, count - 2, list)))
}

/// Maximum length of the list whose elements `apply` passes.
const ARGUMENTS_MAX: usize = 1 << 20;

/// Writes a list's elements to the slots from `first` on. Returns the slot after the last one.
fn spread(frame: Frame, first: usize, mut list: Value) -> usize {
    let mut slot = first;
    while let Some((item, rest)) = list.uncons() {
        frame.set_value(slot as isize, item);
        slot += 1;
        list = rest;
    }
    slot
}

fn call_cc(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let procedure = frame.get(0);
    let (continuation, frame) = machine.capture(frame, 0)?;
    frame.set_value(-1, procedure);
    frame.set_value(0, continuation);
    Ok(Control::Call(frame, 1))
}

fn values(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    machine.values(frame.values(0, count)).map(Control::Value)
}

/// `(%apply-values consumer values)`: calls the consumer with the values.
fn apply_values(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let (consumer, value) = (frame.get(0), frame.get(1));
    frame.set_value(-1, consumer);
    if !value.is_kind(Kind::Values) {
        frame.set_value(0, value);
        return Ok(Control::Call(frame, 1));
    }
    let count = value.size_words();
    let frame = machine.grow(frame, count)?;
    for slot in 0..count {
        frame.set_value(slot as isize, value.field_at(slot));
    }
    Ok(Control::Call(frame, count))
}
