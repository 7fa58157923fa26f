//! Procedures of the system: `eval`, `load`, environments, `exit`.

use crate::kernel::environment::EnvironmentObject;
use crate::kernel::lock;
use crate::kernel::wait::OnThread;
use crate::system::forms::{NextAction, Source, read_all};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_library::datum_of::datum_of;
use kyocho_library::package;
use kyocho_microprocess::Microprocess;
use kyocho_syntax::datum::{Datum, DatumKind, Span};
use kyocho_syntax::environment::Environment;
use kyocho_syntax::source as files;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::wait::{Stage, Wait};
use kyocho_vm::machine::{Exit, Machine};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

pub(crate) const TABLE: &[Procedure] = &[
    Procedure::new("%next-form", 1, Some(1), next_form),
    Procedure::new("%source-of-datum", 2, Some(2), source_of_datum),
    Procedure::new("%source-of-file", 2, Some(2), source_of_file),
    Procedure::new("load-package", 1, Some(1), load_package),
    Procedure::new("%source-of-imports", 1, Some(1), source_of_imports),
    Procedure::new("%source-environment", 1, Some(1), source_environment),
    Procedure::new("interaction-environment", 0, Some(0), interaction_environment),
    Procedure::new("system-environment", 0, Some(0), |m, _, _| {
        let session = &m.thread()?.session;
        if session.id != 0 {
            let message = "system-environment: what all users share is the process's alone";
            return Err(Raise::error(message, Vec::new()));
        }
        let system = Arc::clone(lock(&session.world).system());
        environment_value(m, system)
    }),
    Procedure::new("%exit", 1, Some(1), |_, frame, _| {
        Ok(Control::Stop(Exit::Quit(exit_code(frame.get(0)))))
    }),
    Procedure::new("emergency-exit", 0, Some(1), |_, frame, count| {
        let code = if count > 0 { exit_code(frame.get(0)) } else { 0 };
        Ok(Control::Stop(Exit::Quit(code)))
    }),
    Procedure::new("gc", 0, Some(0), |m, _, _| {
        let kernel = m.kernel()?;
        let ends = match m.wait.take() {
            Some(Wait { stage: Stage::Sent(ends), .. }) => ends,
            _ => kernel.collector.next(),
        };
        kernel.threads.hold(Microprocess::current());
        if kernel.collector.settled() >= ends {
            return Ok(Control::Value(Value::UNSPECIFIED));
        }
        m.wait = Some(Wait { stage: Stage::Sent(ends), ..Wait::on(Value::FALSE) });
        kernel.collector.request_until(ends);
        Ok(Control::Stop(Exit::Park))
    }),
];

/// The exit code for an argument of `exit` (R7RS 6.14). `#t` is success. An exact integer yields
/// its low eight bits, which is all that the host accepts, but no number other than 0 becomes
/// success that way. Everything else is failure.
fn exit_code(value: Value) -> i32 {
    match value.as_fixnum() {
        Some(0) => 0,
        Some(code) if code & 0xff != 0 => (code & 0xff) as i32,
        _ => i32::from(value != Value::TRUE),
    }
}

fn environment_value(machine: &mut Machine, environment: Arc<Environment>) -> Result<Control> {
    let object = Box::new(EnvironmentObject(environment));
    Ok(Control::Value(machine.mutator.foreign(object)?))
}

fn environment_argument(value: Value) -> Result<Arc<Environment>> {
    value
        .as_foreign::<EnvironmentObject>()
        .map(|object| Arc::clone(&object.0))
        .ok_or_else(|| Raise::wrong_type("eval", 2, "environment", value))
}

/// The procedure that evaluates the next form, or `#f`. Expansion may take long, so collections may
/// run meanwhile.
fn next_form(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let Some(source) = frame.get(0).as_foreign::<Source>() else {
        return Err(Raise::wrong_type("%next-form", 1, "source", frame.get(0)));
    };
    let (kernel, session) = (machine.kernel()?, Arc::clone(&machine.thread()?.session));
    let environment = source.environment();
    loop {
        match source.next(&session)? {
            None => return Ok(Control::Value(Value::FALSE)),
            Some(NextAction::Call(thunk)) => return Ok(Control::Value(thunk)),
            Some(NextAction::Ready(name)) => {
                machine.compute_outside(frame, count, || lock(&session.world).library_ready(&name));
            }
            Some(NextAction::Expand(form)) => {
                let expand = || lock(&session.world).expand(&environment, &form);
                let expanded = machine.compute_outside(frame, count, expand);
                machine.with_pauses(frame, count, |m| source.put(&kernel, m, form, expanded))?;
            }
        }
    }
}

fn source_of_datum(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let environment = environment_argument(frame.get(1))?;
    let datum = machine.with_pauses(frame, count, |m| datum_of(m, frame.get(0)))?;
    let source = Source::new(environment, VecDeque::from([Ok(datum)]));
    Ok(Control::Value(machine.mutator.foreign(Box::new(source))?))
}

fn source_of_file(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let environment = environment_argument(frame.get(1))?;
    let path = kyocho_heap::text::to_rust(frame.get(0))
        .ok_or_else(|| Raise::wrong_type("load", 1, "string", frame.get(0)))?;
    kyocho_library::port::permit(&machine.mutator, "load", &path)?;
    let read = || files::read_plain_file(Path::new(&path), Span::default());
    let text = machine.outside(frame, count, read);
    let text = text.map_err(|error| {
        let reason = error.message().to_owned();
        let (path, errno, closed_output) = (path.clone(), None, false);
        Raise::new(kyocho_heap::raise::Cause::File {
            who: "load",
            path,
            reason,
            errno,
            closed_output,
        })
    })?;
    let data = machine.compute_outside(frame, count, || read_all(&text, &path));
    let source = Source::new(environment, data);
    Ok(Control::Value(machine.mutator.foreign(Box::new(source))?))
}

/// `(load-package "FILE.tgz")`: makes the package's libraries available and returns their names.
fn load_package(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let path = kyocho_heap::text::to_rust(frame.get(0))
        .ok_or_else(|| Raise::wrong_type("load-package", 1, "string", frame.get(0)))?;
    kyocho_library::port::permit(&machine.mutator, "load-package", &path)?;
    let package = machine.outside(frame, count, || package::open(Path::new(&path)));
    let package = package.map_err(|error| {
        let (reason, closed_output) = (error.to_string(), false);
        Raise::new(kyocho_heap::raise::Cause::File {
            who: "load-package",
            path: path.clone(),
            reason,
            errno: None,
            closed_output,
        })
    })?;
    let added = lock(&machine.thread()?.session.world).add_package(Arc::new(package));
    let names = Datum::list(added.map_err(Raise::syntax)?, Span::default());
    Ok(Control::Value(machine.mutator.literal(&names)?))
}

/// `(%source-of-imports list)`: the forms that `(environment import-set ...)` must run.
fn source_of_imports(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let mut sets = Vec::new();
    let list = machine.with_pauses(frame, count, |m| datum_of(m, frame.get(0)))?;
    let mut rest = &list;
    while let DatumKind::Pair(set, others) = &*rest.kind {
        sets.push(set.clone());
        rest = others;
    }
    let (kernel, session) = (machine.kernel()?, Arc::clone(&machine.thread()?.session));
    let made = machine.compute_outside(frame, count, || lock(&session.world).environment_of(&sets));
    let (environment, forms) = made.map_err(Raise::syntax)?;
    machine.with_pauses(frame, count, |m| {
        m.keeping(&[], |m| {
            let items = kernel.compile_forms(m, forms, Span::default())?;
            let source = Source::of_items(environment, items);
            Ok(Control::Value(m.foreign(Box::new(source))?))
        })
    })
}

fn source_environment(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let Some(source) = frame.get(0).as_foreign::<Source>() else {
        return Err(Raise::wrong_type("%source-environment", 1, "source", frame.get(0)));
    };
    environment_value(machine, source.environment())
}

fn interaction_environment(machine: &mut Machine, _: Frame, _: usize) -> Result<Control> {
    let environment = machine.thread()?.session.interaction();
    environment_value(machine, environment)
}
