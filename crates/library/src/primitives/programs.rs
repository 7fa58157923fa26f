//! Programs of the host: started in pipelines, waited for, signalled.
//!
//! Waiting for a program happens outside Lisp. A program to which nothing refers any more is
//! killed. Its exit status is collected when another program is started or dropped.

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use super::process::with_variables;
use crate::port::{Content, Flush, Input, Output, Port, count, file_error, permit, waiting};
use crate::session::{Variables, has_request};
use kyocho_heap::account::Held;
use kyocho_heap::heap::{ForeignObject, Mutator};
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;
use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use kyocho_sys::process;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("start-programs", 5, start),
    Primitive::exactly("program?", 1, |_, a| {
        Ok(Value::boolean(a[0].as_foreign::<Program>().is_some()))
    }),
    Primitive::exactly("program-wait", 1, wait),
    Primitive::exactly("program-signal!", 2, signal),
    Primitive::exactly("program-id", 1, |_, a| {
        Ok(Value::fixnum(program(Call::new("program-id", a))?.id.into()))
    }),
];

/// Maximum number of programs of one pipeline.
const PIPELINE_MAX: usize = 64;
/// Offset that a shell adds to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// Killed programs that have not been waited for.
static ORPHANS: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// A program as Lisp refers to it.
#[derive(Debug)]
struct Program {
    name: String,
    id: u32,
    /// Readable when the program has ended.
    ended: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The program runs, or its status was not queried yet. It counts as an open port.
    Started { child: Child, _held: Option<Held> },
    /// The program has ended with this status.
    Ended(ExitStatus),
    /// The status will not be queried any more.
    Dropped,
}

impl ForeignObject for Program {}

impl Drop for Program {
    fn drop(&mut self) {
        let state = core::mem::replace(&mut *self.lock(), State::Dropped);
        if let State::Started { mut child, .. } = state {
            // It may have ended by itself.
            let _ = child.kill();
            orphans().push(child);
        }
        reap();
    }
}

fn orphans() -> MutexGuard<'static, Vec<Child>> {
    ORPHANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects the exit statuses of those that have ended.
fn reap() {
    orphans().retain_mut(|child| matches!(child.try_wait(), Ok(None)));
}

impl Program {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The exit status, if the program has ended.
    fn status(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.lock();
        let status = match &mut *state {
            State::Started { child, .. } => child.try_wait()?,
            State::Ended(status) => Some(*status),
            State::Dropped => None,
        };
        if let Some(status) = status {
            *state = State::Ended(status);
        }
        Ok(status)
    }
}

fn program<'a>(call: Call<'_>) -> Result<&'a Program> {
    call.value(0).as_foreign::<Program>().ok_or_else(|| call.wrong(0, "program"))
}

/// The arguments of `start-programs`.
struct PipelineRequest {
    pipeline: Vec<Vec<String>>,
    /// Whether Lisp writes the input of the first program.
    takes_input: bool,
    /// Whether errors go to a port of their own, rather than with the output.
    splits_errors: bool,
    folder: Option<String>,
    /// Changes to the process's environment variables. A name without a value is removed.
    environment: Vec<(String, Option<String>)>,
}

/// Maximum number of words and variables of one program: the host accepts at most about 100,000.
const ELEMENTS_MAX: usize = 1 << 17;

/// The elements of a proper list; `None` if it is too long.
fn elements(mut list: Value) -> Option<Vec<Value>> {
    let mut elements = Vec::new();
    while let Some((element, rest)) = list.uncons() {
        elements.push(element);
        list = rest;
        if elements.len() > ELEMENTS_MAX {
            return None;
        }
    }
    list.is_nil().then_some(elements)
}

/// A program's name and arguments.
fn words(list: Value) -> Option<Vec<String>> {
    let words =
        elements(list)?.into_iter().map(kyocho_heap::text::to_rust).collect::<Option<Vec<_>>>()?;
    (!words.is_empty()).then_some(words)
}

/// A variable's name, and its value if it has one.
fn variable(entry: Value) -> Option<(String, Option<String>)> {
    let (name, value) = entry.uncons()?;
    let name = kyocho_heap::text::to_rust(name)?;
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    is_name.then(|| (name, kyocho_heap::text::to_rust(value)))
}

impl PipelineRequest {
    /// Parses `((word ...) ...) input? errors? folder environment`.
    fn of(call: Call<'_>) -> Result<Self> {
        let lists =
            elements(call.value(0)).filter(|lists| (1..=PIPELINE_MAX).contains(&lists.len()));
        let pipeline = lists.and_then(|lists| lists.into_iter().map(words).collect());
        let bound = || format!("1 to {PIPELINE_MAX} programs, each a list of strings");
        let pipeline = pipeline.ok_or_else(|| call.outside(0, bound()))?;
        let folder = call.value(3).is_true().then(|| call.string(3)).transpose()?;
        let variables = elements(call.value(4));
        let environment = variables.and_then(|all| all.into_iter().map(variable).collect());
        let environment = environment.ok_or_else(|| call.wrong(4, "list of (name . value)"))?;
        let (takes_input, splits_errors) = (call.value(1).is_true(), call.value(2).is_true());
        Ok(Self { pipeline, takes_input, splits_errors, folder, environment })
    }

    /// The command that starts a program of the pipeline.
    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Starts all programs. If one fails to start, those before it are killed, and the error names
    /// it.
    fn start(&self) -> core::result::Result<Started, (String, io::Error)> {
        let mut started = Started::default();
        let result = self.pipeline.iter().enumerate().try_for_each(|(i, words)| {
            self.start_one(i, words, &mut started).map_err(|error| (words[0].clone(), error))
        });
        if result.is_err() {
            for child in &mut started.children {
                // It may have ended by itself.
                let _ = child.kill();
            }
            orphans().append(&mut started.children);
            reap();
        }
        result.map(|()| started)
    }

    fn start_one(&self, i: usize, words: &[String], started: &mut Started) -> io::Result<()> {
        let mut command = self.command(words);
        match started.output.take() {
            Some(output) => command.stdin(output),
            None if self.takes_input => {
                let (read, write) = io::pipe()?;
                started.input = Some(write.into());
                command.stdin(read)
            }
            None => command.stdin(Stdio::null()),
        };
        let (read, write) = io::pipe()?;
        if self.splits_errors {
            if i == 0 {
                let (read, write) = io::pipe()?;
                (started.errors, started.error_end) = (Some(read.into()), Some(write.into()));
            }
            let end = started.error_end.as_ref().map(OwnedFd::try_clone).transpose()?;
            command.stderr(end.map_or_else(Stdio::null, Stdio::from));
        } else {
            command.stderr(write.try_clone()?);
        }
        command.stdout(write);
        started.children.push(command.spawn()?);
        started.output = Some(read.into());
        if i + 1 == self.pipeline.len() {
            started.error_end = None;
        }
        Ok(())
    }
}

/// A pipeline that was started.
#[derive(Debug, Default)]
struct Started {
    children: Vec<Child>,
    input: Option<OwnedFd>,
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
    error_end: Option<OwnedFd>,
}

/// The objects that will refer to the programs and ports. They are made before anything is started,
/// because a call that runs out of memory is repeated.
struct PipelineObjects {
    programs: Vec<Value>,
    /// Input, output, errors, as far as requested.
    ports: [Value; 3],
    all: Value,
}

impl PipelineObjects {
    fn reserve(m: &mut Mutator, request: &PipelineRequest) -> Result<Self> {
        let mut list = Builder::new();
        let mut programs = Vec::new();
        for words in &request.pipeline {
            m.charge(size_of::<Program>() + words[0].len())?;
            programs.push(m.reserve_foreign()?);
            list.push(m, programs[programs.len() - 1])?;
        }
        let mut ports = [Value::FALSE; 3];
        let wanted = [request.takes_input, true, request.splits_errors];
        for (port, _) in ports.iter_mut().zip(wanted).filter(|(_, wanted)| *wanted) {
            m.charge(size_of::<Port>())?;
            *port = m.reserve_foreign()?;
        }
        let [input, output, errors] = ports;
        Ok(Self { programs, ports, all: m.list(&[list.finish(), input, output, errors])? })
    }
}

/// `(start-programs pipeline input? errors? folder environment)`: returns `(programs input output
/// errors)`. The ports are binary.
fn start(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("start-programs", arguments);
    let mut request = PipelineRequest::of(call)?;
    // The call's own variables come last, so they take precedence.
    request.environment.splice(..0, with_variables(m, Variables::changes));
    permit(m, call.who(), &request.pipeline[0][0])?;
    // Everything is counted before it is started: each program, and each end of a pipe that Lisp
    // has.
    let ends = 1 + usize::from(request.takes_input) + usize::from(request.splits_errors);
    let count_all = request.pipeline.len() + ends;
    let mut held = (0..count_all).map(|_| count(m, call.who())).collect::<Result<Vec<_>>>()?;
    let objects = PipelineObjects::reserve(m, &request)?;
    m.context.held = objects.all;
    let started = waiting(m, |_| {
        reap();
        request.start()
    });
    m.context.held = Value::FALSE;
    let started = started.map_err(|(name, error)| file_error(call.who(), &name, &error))?;
    let mut take = || held.pop().flatten();
    let programs = started.children.into_iter().zip(&request.pipeline).zip(objects.programs);
    for ((child, words), place) in programs {
        let id = child.id();
        let ended = process::open(id).map_err(|e| file_error(call.who(), &words[0], &e.into()))?;
        let state = Mutex::new(State::Started { child, _held: take() });
        let program = Program { name: words[0].clone(), id, ended, state };
        m.complete_foreign(place, Box::new(program));
    }
    let name = &request.pipeline[0][0];
    let [input, output, errors] = objects.ports;
    for (end, place) in [(started.output, output), (started.errors, errors)] {
        if let Some(end) = end {
            let input = Input::of_file(end).counted(take());
            m.complete_foreign(place, Box::new(Port::of_input(name, Content::Binary, input)));
        }
    }
    if let Some(end) = started.input {
        let output = Output::of_file(end, Flush::WhenFull).counted(take());
        m.complete_foreign(input, Box::new(Port::of_output(name, Content::Binary, output)));
    }
    Ok(objects.all)
}

/// `(program-wait program)`: the exit code; 128 plus the signal's number if a signal ended it.
fn wait(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("program-wait", arguments);
    let program = program(call)?;
    let refused = |error: io::Error| file_error(call.who(), &program.name, &error);
    loop {
        if let Some(status) = program.status().map_err(refused)? {
            let code = status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or(0));
            return Ok(Value::fixnum(code.into()));
        }
        match waiting(m, |_| poll::wait([(program.ended.as_fd(), Interest::Read)], None)) {
            Err(Errno::INTR) if has_request(&m.context) => {
                return Err(Raise::new(Cause::Interrupted));
            }
            Err(Errno::INTR) | Ok(_) => {}
            Err(errno) => return Err(refused(errno.into())),
        }
    }
}

/// `(program-signal! program number)`: whether the program still existed.
fn signal(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("program-signal!", arguments);
    let program = program(call)?;
    let number = call.fixnum(1)?;
    let number = i32::try_from(number).ok().filter(|number| (1..=64).contains(number));
    let number = number.ok_or_else(|| call.outside(1, "1 <= signal <= 64"))?;
    match process::signal(program.ended.as_fd(), number) {
        Ok(()) => Ok(Value::TRUE),
        Err(Errno::SRCH) => Ok(Value::FALSE),
        Err(errno) => Err(file_error(call.who(), &program.name, &errno.into())),
    }
}
