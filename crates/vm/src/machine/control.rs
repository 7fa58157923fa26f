//! Control procedures, which affect the machine itself. A primitive gets its arguments as a slice;
//! a control procedure gets the frame that contains them.

use crate::machine::access::Frame;
use crate::machine::{Exit, Machine, Next};
use crate::primitive::Primitive;
use kyocho_heap::raise::Result;
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
    /// The machine's own, then those of the system.
    procedures: Vec<&'static Procedure>,
    /// Number of the machine's own procedures.
    own: usize,
}

static TABLES: OnceLock<Tables> = OnceLock::new();

/// Sets the tables: the primitives, the machine's own control procedures, and those of the system.
/// Only the first call in a process has an effect.
pub(super) fn set_tables(
    primitives: impl Iterator<Item = &'static Primitive>,
    own: &'static [Procedure],
    others: impl Iterator<Item = &'static Procedure>,
) {
    TABLES.get_or_init(|| Tables {
        primitives: primitives.collect(),
        procedures: own.iter().chain(others).collect(),
        own: own.len(),
    });
}

#[inline]
fn tables() -> &'static Tables {
    TABLES.get().expect("the tables are installed before there is a machine")
}

/// Every primitive, by index. The indices of control procedures are greater.
///
/// # Panics
/// No tables are [installed](super::install).
#[must_use]
pub fn primitives() -> &'static [&'static Primitive] {
    &tables().primitives
}

/// Every control procedure, by index.
///
/// # Panics
/// No tables are [installed](super::install).
pub fn procedures() -> impl Iterator<Item = (usize, &'static Procedure)> {
    tables().procedures.iter().enumerate().map(|(i, &control)| (CONTROL_INDEX + i, control))
}

/// The control procedures that are system calls, by number. These are all except the machine's own
/// and those that only the prelude calls.
///
/// # Panics
/// No tables are [installed](super::install).
pub fn system_calls() -> impl Iterator<Item = (usize, &'static str)> {
    let tables = tables();
    let names = tables.procedures.iter().map(|procedure| procedure.name).enumerate();
    names.skip(tables.own).filter(|(_, name)| !name.starts_with('%'))
}

/// The number of the control procedure with this index.
pub(crate) fn number_of(index: usize) -> usize {
    index - CONTROL_INDEX
}

/// The primitive with this index.
#[inline]
pub(crate) fn primitive_at(index: usize) -> Option<&'static Primitive> {
    primitives().get(index).copied()
}

/// The control procedure with this index.
pub(crate) fn procedure_at(index: usize) -> Option<&'static Procedure> {
    tables().procedures.get(index.checked_sub(CONTROL_INDEX)?).copied()
}
