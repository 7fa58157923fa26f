//! Time, the command line, the environment.

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use crate::port::permit;
use crate::session::{self, Variables};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use kyocho_syntax::world::FEATURES;
use kyocho_sys::clock;
use std::sync::OnceLock;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("current-jiffy", 0, |_, _| Ok(Value::fixnum(clock::monotonic_ns() as i64))),
    Primitive::exactly("jiffies-per-second", 0, |_, _| Ok(Value::fixnum(1_000_000_000))),
    Primitive::exactly("current-second", 0, |m, _| Ok(m.flonum(clock::wall_ns() as f64 / 1e9)?)),
    Primitive::exactly("command-line", 0, command_line),
    Primitive::exactly("get-environment-variable", 1, get_environment_variable),
    Primitive::exactly("get-environment-variables", 0, get_environment_variables),
    Primitive::exactly("set-environment-variable!", 2, |m, a| {
        change_environment(m, Call::new("set-environment-variable!", a))
    }),
    Primitive::exactly("delete-environment-variable!", 1, |m, a| {
        change_environment(m, Call::new("delete-environment-variable!", a))
    }),
    Primitive::exactly("features", 0, features),
];

static COMMAND_LINE: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the result of `(command-line)`: the program and its arguments. Only the first call has an
/// effect; by default the process's own command line is returned.
pub fn set_command_line(words: Vec<String>) {
    // A second change would alter what a running program has read.
    let _ = COMMAND_LINE.set(words);
}

fn command_line(m: &mut Mutator, _: &[Value]) -> Result {
    let words = COMMAND_LINE.get_or_init(|| {
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
    });
    let mut list = Builder::new();
    for word in words {
        let word = m.string(word)?;
        list.push(m, word)?;
    }
    Ok(list.finish())
}

/// The variables of threads without a session.
static WITHOUT_SESSION: Variables = Variables::new();

/// Runs `act` on the environment variables of the running thread's session.
pub(super) fn with_variables<T>(m: &Mutator, act: impl FnOnce(&Variables) -> T) -> T {
    session::with(&m.context, |own| act(own.map_or(&WITHOUT_SESSION, |own| &own.variables)))
}

fn get_environment_variable(m: &mut Mutator, arguments: &[Value]) -> Result {
    let name = Call::new("get-environment-variable", arguments).string(0)?;
    permit(m, "get-environment-variable", &name)?;
    // No variable has such a name, and the library would panic.
    if !is_name(&name) {
        return Ok(Value::FALSE);
    }
    match with_variables(m, |variables| variables.get(&name)) {
        Some(value) => Ok(m.string(&value)?),
        None => Ok(Value::FALSE),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn get_environment_variables(m: &mut Mutator, _: &[Value]) -> Result {
    permit(m, "get-environment-variables", "the environment")?;
    let mut list = Builder::new();
    for (name, value) in with_variables(m, Variables::all) {
        let (name, value) = (m.string(&name)?, m.string(&value)?);
        let entry = m.cons(name, value)?;
        list.push(m, entry)?;
    }
    Ok(list.finish())
}

/// Changes a variable for the session and the programs that it starts.
fn change_environment(m: &mut Mutator, call: Call<'_>) -> Result {
    let name = call.string(0)?;
    let value = call.optional(1).map(|_| call.string(1)).transpose()?;
    permit(m, call.who(), &name)?;
    if !is_name(&name) {
        return Err(call.outside(0, "a name that is not empty and has no = in it"));
    }
    if value.as_ref().is_some_and(|value| value.contains('\0')) {
        return Err(call.outside(1, "text without a null character"));
    }
    let changed = with_variables(m, |variables| variables.set(&name, value.as_deref()));
    changed.map_err(|_| call.outside(0, "room for it among the session's changes (128 KiB)"))?;
    Ok(Value::UNSPECIFIED)
}

/// The features that `cond-expand` knows, besides libraries.
fn features(m: &mut Mutator, _: &[Value]) -> Result {
    let mut list = Builder::new();
    for name in FEATURES {
        let symbol = Value::symbol(kyocho_syntax::symbol::Symbol::intern(name));
        list.push(m, symbol)?;
    }
    Ok(list.finish())
}
