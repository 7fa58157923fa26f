//! Opening, closing and querying ports; files by name.

use super::Primitive;
use super::call::Call;
use crate::port::{
    Content, Direction, Flush, Input, Output, Port, Role, count, file_error, parameter, permit,
    waiting,
};
use core::ffi::CStr;
use kyocho_heap::account::Held;
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::text::{self, bytes};
use kyocho_heap::value::Value;
use kyocho_sys::descriptor::{self, Access};
use kyocho_sys::error::Errno;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("port?", 1, |_, a| Ok(Value::boolean(a[0].as_foreign::<Port>().is_some()))),
    Primitive::exactly("input-port?", 1, |_, a| is(a, Port::is_input)),
    Primitive::exactly("output-port?", 1, |_, a| is(a, Port::is_output)),
    Primitive::exactly("textual-port?", 1, |_, a| is(a, |port| port.content() == Content::Textual)),
    Primitive::exactly("binary-port?", 1, |_, a| is(a, |port| port.content() == Content::Binary)),
    Primitive::exactly("input-port-open?", 1, |m, a| {
        is_open(m, "input-port-open?", a, Direction::Input)
    }),
    Primitive::exactly("output-port-open?", 1, |m, a| {
        is_open(m, "output-port-open?", a, Direction::Output)
    }),
    Primitive::exactly("close-port", 1, |m, a| close(m, "close-port", a, None)),
    Primitive::exactly("close-input-port", 1, |m, a| {
        close(m, "close-input-port", a, Some(Direction::Input))
    }),
    Primitive::exactly("close-output-port", 1, |m, a| {
        close(m, "close-output-port", a, Some(Direction::Output))
    }),
    Primitive::exactly("%port-parameter", 2, port_parameter),
    Primitive::exactly("open-input-file", 1, |m, a| {
        open_input(m, "open-input-file", a, Content::Textual)
    }),
    Primitive::exactly("open-binary-input-file", 1, |m, a| {
        open_input(m, "open-binary-input-file", a, Content::Binary)
    }),
    Primitive::between("open-output-file", 1, 2, |m, a| {
        open_output(m, "open-output-file", a, Content::Textual)
    }),
    Primitive::between("open-binary-output-file", 1, 2, |m, a| {
        open_output(m, "open-binary-output-file", a, Content::Binary)
    }),
    Primitive::exactly("open-input-string", 1, |m, a| {
        let text = Call::new("open-input-string", a).text(0)?.to_rust_in_parts(m)?;
        let input = Input::of_memory(text.into_bytes());
        store(m, Port::of_input("string", Content::Textual, input))
    }),
    Primitive::exactly("open-input-bytevector", 1, open_input_bytevector),
    Primitive::exactly("open-output-string", 0, |m, _| {
        store(m, Port::of_output("string", Content::Textual, Output::of_memory()))
    }),
    Primitive::exactly("open-output-bytevector", 0, |m, _| {
        store(m, Port::of_output("bytevector", Content::Binary, Output::of_memory()))
    }),
    Primitive::exactly("get-output-string", 1, get_output_string),
    Primitive::exactly("get-output-bytevector", 1, get_output_bytevector),
    Primitive::exactly("file-exists?", 1, file_exists),
    Primitive::exactly("delete-file", 1, delete_file),
];

pub(super) fn store(m: &mut Mutator, port: Port) -> Result {
    Ok(m.foreign(Box::new(port))?)
}

/// Argument `i` as a port.
pub(super) fn port_at<'a>(call: Call<'_>, i: usize, expected: &'static str) -> Result<&'a Port> {
    call.value(i).as_foreign::<Port>().ok_or_else(|| call.wrong(i, expected))
}

fn is(arguments: &[Value], test: fn(&Port) -> bool) -> Result {
    Ok(Value::boolean(arguments[0].as_foreign::<Port>().is_some_and(test)))
}

fn expected(direction: Option<Direction>) -> &'static str {
    match direction {
        None => "port",
        Some(Direction::Input) => "input port",
        Some(Direction::Output) => "output port",
    }
}

fn is_open(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    direction: Direction,
) -> Result {
    let port = port_at(Call::new(who, arguments), 0, "port")?;
    if !port.has(direction) {
        return Ok(Value::FALSE);
    }
    port.is_open(m, direction).map(Value::boolean)
}

/// Closes one end, or all ends of the port.
fn close(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    direction: Option<Direction>,
) -> Result {
    let call = Call::new(who, arguments);
    let expected = expected(direction);
    let port = port_at(call, 0, expected)?;
    if direction.is_some_and(|direction| !port.has(direction)) {
        return Err(call.wrong(0, expected));
    }
    let mut passed_on = Ok(());
    if direction != Some(Direction::Input) {
        passed_on = port.close_output(m)?;
        if let Err(error) = &passed_on
            && error.kind() == io::ErrorKind::Interrupted
        {
            return Err(port.refused(who, error));
        }
    }
    if direction != Some(Direction::Output) {
        port.close_input(m)?;
    }
    passed_on.map_err(|error| port.refused(who, &error))?;
    Ok(Value::UNSPECIFIED)
}

/// `(%port-parameter role converter)`: the parameter object of a current port.
fn port_parameter(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("%port-parameter", arguments);
    let role = Role::of_number(call.fixnum(0)?).ok_or_else(|| call.outside(0, "0, 1 or 2"))?;
    parameter(m, role, arguments[1])
}

/// An open file, with its count among its user's open ports.
pub(super) struct Opened {
    pub(super) path: String,
    pub(super) file: OwnedFd,
    pub(super) held: Option<Held>,
    /// The object that will become its port.
    pub(super) place: Value,
}

impl Opened {
    /// Makes the port of the file.
    pub(super) fn store(
        self,
        m: &mut Mutator,
        port: impl FnOnce(String, OwnedFd, Option<Held>) -> Port,
    ) -> Value {
        let port = port(self.path, self.file, self.held);
        m.complete_outside(self.place, port)
    }
}

fn open(m: &mut Mutator, call: Call<'_>, access: Access) -> Result<Opened> {
    open_by(m, call, |name| descriptor::open(name, access))
}

/// Opens the file that argument 0 names, outside Lisp: a pipe or a network disk may take long.
pub(super) fn open_by(
    m: &mut Mutator,
    call: Call<'_>,
    open: impl Fn(&CStr) -> core::result::Result<OwnedFd, Errno>,
) -> Result<Opened> {
    let path = call.string(0)?;
    permit(m, call.who(), &path)?;
    let place = m.reserve_outside::<Port>()?;
    let held = count(m, call.who())?;
    let refused = |error: io::Error| file_error(call.who(), &path, &error);
    let name = CString::new(path.as_str()).map_err(|error| refused(error.into()))?;
    let opened = waiting(m, |is_cut| {
        loop {
            match open(&name) {
                Err(Errno::INTR) if !is_cut() => {}
                result => return result,
            }
        }
    });
    let file = match opened {
        Ok(file) => File::from(file),
        Err(Errno::INTR) => return Err(Raise::new(Cause::Interrupted)),
        Err(errno) => return Err(refused(errno.into())),
    };
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(refused(io::ErrorKind::IsADirectory.into()));
    }
    Ok(Opened { path, file: file.into(), held, place })
}

fn open_input(m: &mut Mutator, who: &'static str, arguments: &[Value], content: Content) -> Result {
    let call = Call::new(who, arguments);
    let opened = open(m, call, Access::Read)?;
    Ok(opened.store(m, |path, file, held| {
        Port::of_input(path, content, Input::of_file(file).counted(held))
    }))
}

/// `(open-output-file path [append?])`.
fn open_output(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    content: Content,
) -> Result {
    let call = Call::new(who, arguments);
    let append = call.optional(1).is_some_and(Value::is_true);
    let access = if append { Access::Append } else { Access::Replace };
    let opened = open(m, call, access)?;
    Ok(opened.store(m, |path, file, held| {
        Port::of_output(path, content, Output::of_file(file, Flush::WhenFull).counted(held))
    }))
}

fn open_input_bytevector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("open-input-bytevector", arguments);
    let length = super::bytevectors::length(call, 0)?;
    let mut all = Vec::new();
    bytes::read(&mut all, super::bytevectors::address(arguments[0]), length);
    store(m, Port::of_input("bytevector", Content::Binary, Input::of_memory(all)))
}

/// The content of an output port in memory.
fn gathered(m: &mut Mutator, call: Call<'_>, content: Content) -> Result<Vec<u8>> {
    let expected = match content {
        Content::Textual => "string output port",
        Content::Binary => "bytevector output port",
    };
    let port = port_at(call, 0, expected)?;
    let bytes = port.output(m)?.and_then(|output| output.gathered().map(<[u8]>::to_vec));
    bytes.filter(|_| port.content() == content).ok_or_else(|| call.wrong(0, expected))
}

fn get_output_string(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("get-output-string", arguments);
    let bytes = gathered(m, call, Content::Textual)?;
    // Only complete characters were written.
    text::new_in_parts(m, &String::from_utf8_lossy(&bytes))
}

fn get_output_bytevector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("get-output-bytevector", arguments);
    let bytes = gathered(m, call, Content::Binary)?;
    Ok(m.bytevector(&bytes)?)
}

fn file_exists(m: &mut Mutator, arguments: &[Value]) -> Result {
    let path = Call::new("file-exists?", arguments).string(0)?;
    permit(m, "file-exists?", &path)?;
    Ok(Value::boolean(waiting(m, |_| fs::exists(&path)).unwrap_or(false)))
}

fn delete_file(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("delete-file", arguments);
    let path = call.string(0)?;
    permit(m, call.who(), &path)?;
    match waiting(m, |_| fs::remove_file(&path)) {
        Ok(()) => Ok(Value::UNSPECIFIED),
        Err(error) => Err(file_error(call.who(), &path, &error)),
    }
}
