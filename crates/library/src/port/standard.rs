//! The process's standard ports, the current ports of a thread, and the ports to flush at the end.

use super::output::Flush;
use super::{Content, Input, Output, Port};
use kyocho_heap::account::Account;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::value::Value;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

/// The roles of the current ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `current-input-port`.
    Input,
    /// `current-output-port`.
    Output,
    /// `current-error-port`.
    Error,
}

/// Index of the payload word of a parameter object that contains the role of a current port. The
/// machine uses the two words before it, for value and converter.
const PARAMETER_ROLE: usize = 2;

pub(super) const OUTPUT_NAME: &str = "standard output";

static STANDARD: LazyLock<[Port; 3]> = LazyLock::new(|| {
    let input = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(file) => Input::of_standard(file),
        Err(_) => Input::of_memory(Vec::new()),
    };
    let flush = if io::stdout().is_terminal() { Flush::EachLine } else { Flush::WhenFull };
    let open = |file: io::Result<_>, flush| match file {
        Ok(file) => Output::of_file(file, flush),
        Err(_) => Output::closed(),
    };
    let output = open(io::stdout().as_fd().try_clone_to_owned(), flush);
    let error = open(io::stderr().as_fd().try_clone_to_owned(), Flush::EachCall);
    [
        Port::of_input("standard input", Content::Textual, input),
        Port::of_output(OUTPUT_NAME, Content::Textual, output),
        Port::of_output("standard error", Content::Textual, error),
    ]
});

/// The output ports over files, for the last flush. When the vector is full, ports that were
/// dropped are removed from it.
static OUTPUTS: Mutex<Vec<Weak<super::Body>>> = Mutex::new(Vec::new());

impl Role {
    /// The role with this number: 0, 1 or 2.
    pub(crate) fn of_number(number: i64) -> Option<Self> {
        [Self::Input, Self::Output, Self::Error].get(usize::try_from(number).ok()?).copied()
    }
}

/// The process's port for a role.
pub fn port(role: Role) -> &'static Port {
    &STANDARD[role as usize]
}

/// A parameter object for a role, with the process's port as its value.
pub(crate) fn parameter(
    m: &mut Mutator,
    role: Role,
    converter: Value,
) -> kyocho_heap::raise::Result {
    let value = m.foreign(Box::new(port(role).clone()))?;
    let role = Value::fixnum(role as i64);
    Ok(m.object_of(Kind::Parameter, &[value, converter, role])?)
}

/// The current port of the running thread: the value of the parameter, or the process's port.
#[must_use]
pub fn current(m: &Mutator, role: Role) -> Port {
    let number = Value::fixnum(role as i64);
    let mut bindings = m.context.parameters;
    while let Some((binding, rest)) = bindings.uncons() {
        if let Some((parameter, value)) = binding.uncons()
            && parameter.field(PARAMETER_ROLE) == Some(number)
            && let Some(port) = value.as_foreign::<Port>()
        {
            return port.clone();
        }
        bindings = rest;
    }
    port(role).clone()
}

/// Registers an output port for the last flush. The registration does not keep the port alive.
pub(super) fn register(port: &Port) {
    let mut outputs = OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    if outputs.len() == outputs.capacity() {
        outputs.retain(|port| port.strong_count() > 0);
    }
    outputs.push(Arc::downgrade(&port.0));
}

/// Ends an unfinished line on the process's standard output if it is a terminal. Otherwise a line
/// editor would overwrite the line. Does nothing while a thread is writing.
///
/// # Errors
/// The host's error.
pub fn end_line() -> io::Result<()> {
    let Some(output) = port(Role::Output).output_end() else { return Ok(()) };
    if !io::stdout().is_terminal() {
        return Ok(());
    }
    output.try_lock().map_or(Ok(()), |mut output| output.end_line())
}

/// Flushes all ports over files, before the process ends.
///
/// # Errors
/// The host's first error. The other ports are flushed nevertheless.
pub fn flush_all() -> io::Result<()> {
    flush_those(|_| true)
}

/// As [`flush_all`], for the ports of one account, and the process's own.
///
/// # Errors
/// As [`flush_all`].
pub fn flush_of(account: &Arc<Account>) -> io::Result<()> {
    flush_those(|output| output.is_of(account))
}

fn flush_those(is_meant: impl Fn(&Output) -> bool) -> io::Result<()> {
    // The standard ports are registered at their first use. Unused ones have nothing to flush.
    let outputs: Vec<Weak<super::Body>> =
        OUTPUTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut result = Ok(());
    for body in outputs.iter().filter_map(Weak::upgrade) {
        let flushed = Port(body).flush_at_exit(&is_meant);
        result = result.and(flushed);
    }
    result
}
