//! Control procedures, which affect the machine itself. A primitive gets its arguments as a slice;
//! a control procedure gets the frame that contains them.

use crate::machine::access::Frame;
use crate::machine::{Exit, Machine, Next};
use crate::primitive::Primitive;
use kyocho_heap::heap::Kind;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use std::sync::OnceLock;

/// How the machine continues after a control procedure.
#[derive(Clone, Copy, Debug)]
pub enum Control {
    /// The procedure returns this value.
    Value(Value),
    /// The frame now contains another call, with this number of arguments.
    Call(Frame, usize),
    /// Continue at another position.
    Go(Next),
    /// Stop the machine. The call is repeated when the machine continues.
    Stop(Exit),
}

/// The body of a control procedure: the frame holds its `count` arguments.
pub type Function = fn(&mut Machine, Frame, usize) -> Result<Control>;

/// A control procedure.
#[derive(Clone, Copy, Debug)]
pub struct Procedure {
    /// Its name.
    pub name: &'static str,
    /// The minimum number of arguments.
    pub min: u16,
    /// The maximum number of arguments; `None` for any number.
    pub max: Option<u16>,
    /// Its body.
    pub function: Function,
}

impl Procedure {
    /// A control procedure.
    pub const fn new(name: &'static str, min: u16, max: Option<u16>, function: Function) -> Self {
        Self { name, min, max, function }
    }
}

/// Indices of control procedures start here; smaller ones are primitives.
const CONTROL_INDEX: usize = 1 << 20;

/// The procedures written in Rust that programs can call. The order never changes in a process: an
/// index identifies a procedure.
#[derive(Debug)]
struct Tables {
    primitives: Vec<&'static Primitive>,
    procedures: Vec<&'static Procedure>,
}

static TABLES: OnceLock<Tables> = OnceLock::new();

/// Installs the procedures that the machine does not define itself. Call it before any other
/// function of this module. Later calls have no effect.
pub fn install(
    primitives: impl Iterator<Item = &'static Primitive>,
    procedures: impl Iterator<Item = &'static Procedure>,
) {
    TABLES.get_or_init(|| Tables {
        primitives: primitives.chain(super::builtin::TABLE).collect(),
        procedures: TABLE.iter().chain(procedures).collect(),
    });
}

#[inline]
fn tables() -> &'static Tables {
    TABLES.get().expect("the tables are installed before there is a machine")
}

/// Every primitive, by index.
///
/// # Panics
/// No tables are [installed](install).
#[must_use]
pub fn primitives() -> &'static [&'static Primitive] {
    &tables().primitives
}

/// Every control procedure, by index.
///
/// # Panics
/// No tables are [installed](install).
pub fn procedures() -> impl Iterator<Item = (usize, &'static Procedure)> {
    tables().procedures.iter().enumerate().map(|(i, &control)| (CONTROL_INDEX + i, control))
}

/// The control procedures that are system calls, by number. These are all except the machine's own
/// and those that only the prelude calls.
///
/// # Panics
/// No tables are [installed](install).
pub fn system_calls() -> impl Iterator<Item = (usize, &'static str)> {
    let names =
        tables().procedures.iter().map(|procedure| procedure.name).enumerate().skip(TABLE.len());
    names.filter(|(_, name)| !name.starts_with('%'))
}

/// The number of the control procedure with this index.
pub(crate) fn number_of(index: usize) -> usize {
    index - CONTROL_INDEX
}

/// The control procedure with this index.
pub(crate) fn procedure_at(index: usize) -> Option<&'static Procedure> {
    tables().procedures.get(index.checked_sub(CONTROL_INDEX)?).copied()
}

const TABLE: &[Procedure] = &[
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

/// Maximum number of arguments of one call.
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
