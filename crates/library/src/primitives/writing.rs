//! Writing to ports.

use super::Primitive;
use super::call::Call;
use super::ports::port_at;
use super::reading::closed;
use crate::port::{Content, Output, Port, Role, current};
use crate::printer::{self, Style, TEXT_BYTES_MAX};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::text::bytes;
use kyocho_heap::value::Value;
use std::io::{self, ErrorKind};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::between("write", 1, 2, |m, a| print(m, "write", a, Style::Write)),
    Primitive::between("display", 1, 2, |m, a| print(m, "display", a, Style::Display)),
    Primitive::between("write-shared", 1, 2, |m, a| print(m, "write-shared", a, Style::Shared)),
    Primitive::between("write-simple", 1, 2, |m, a| print(m, "write-simple", a, Style::Simple)),
    Primitive::between("newline", 0, 1, |m, a| put(m, Call::new("newline", a), 0, b"\n")),
    Primitive::between("fresh-line", 0, 1, fresh_line),
    Primitive::between("write-char", 1, 2, write_char),
    Primitive::between("write-string", 1, 4, write_string),
    Primitive::between("write-u8", 1, 2, write_u8),
    Primitive::between("write-bytevector", 1, 4, write_bytevector),
    Primitive::between("flush-output-port", 0, 1, |m, a| flush(m, "flush-output-port", a)),
    Primitive::between("flush-output", 0, 1, |m, a| flush(m, "flush-output", a)),
];

/// The output port in argument `i`, or the current one.
fn output_port(m: &mut Mutator, call: Call<'_>, i: usize, content: Content) -> Result<Port> {
    let expected = match content {
        Content::Textual => "textual output port",
        Content::Binary => "binary output port",
    };
    let port = match call.optional(i) {
        None => current(m, Role::Output),
        Some(_) => port_at(call, i, expected)?.clone(),
    };
    if !port.is_output() || port.content() != content {
        return Err(match call.optional(i) {
            Some(_) => call.wrong(i, expected),
            None => Raise::error(format!("{}: needs a {expected}", call.who()), Vec::new()),
        });
    }
    Ok(port)
}

/// Runs `operation` on the open output end of a port.
fn on_output<T>(
    m: &mut Mutator,
    call: Call<'_>,
    port: &Port,
    operation: impl FnOnce(&mut Output, &mut Mutator) -> io::Result<T>,
) -> Result<T> {
    let Some(mut output) = port.output(m)? else {
        return Err(Raise::error(format!("{}: not an output port", call.who()), Vec::new()));
    };
    if !output.is_open() {
        return Err(closed(call, port));
    }
    operation(&mut output, m).map_err(|error| match error.kind() {
        ErrorKind::OutOfMemory => Raise::out_of_memory(),
        _ => port.refused(call.who(), &error),
    })
}

/// Writes bytes to the textual port in argument `i`.
fn put(m: &mut Mutator, call: Call<'_>, i: usize, bytes: &[u8]) -> Result {
    let port = output_port(m, call, i, Content::Textual)?;
    on_output(m, call, &port, |output, m| output.write(m, bytes))?;
    Ok(Value::UNSPECIFIED)
}

fn print(m: &mut Mutator, who: &'static str, arguments: &[Value], style: Style) -> Result {
    let call = Call::new(who, arguments);
    let port = output_port(m, call, 1, Content::Textual)?;
    // The text is outside the heap, so it is limited by the room in the user's account.
    let bytes_max = m.attainable_bytes().min(TEXT_BYTES_MAX);
    let text = printer::to_text_in_parts(m, arguments[0], style, bytes_max)?.ok_or_else(|| {
        Raise::error(format!("{who}: text of more than {bytes_max} bytes"), Vec::new())
    })?;
    on_output(m, call, &port, |output, m| output.write(m, text.as_bytes()))?;
    Ok(Value::UNSPECIFIED)
}

/// Writes a newline unless the line is empty.
fn fresh_line(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("fresh-line", arguments);
    let port = output_port(m, call, 0, Content::Textual)?;
    on_output(m, call, &port, |output, m| {
        if output.is_at_line_start() { Ok(()) } else { output.write(m, b"\n") }
    })?;
    Ok(Value::UNSPECIFIED)
}

fn write_char(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("write-char", arguments);
    let mut buffer = [0; 4];
    let encoded = call.character(0)?.encode_utf8(&mut buffer);
    put(m, call, 1, encoded.as_bytes())
}

/// `(write-string string [port [start [end]]])`.
fn write_string(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("write-string", arguments);
    let text = call.text(0)?;
    let range = call.range(2, text.length())?;
    let port = output_port(m, call, 1, Content::Textual)?;
    let encoded = text.to_rust_mapped(m, range, |part| part)?;
    on_output(m, call, &port, |output, m| output.write(m, encoded.as_bytes()))?;
    Ok(Value::UNSPECIFIED)
}

fn write_u8(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("write-u8", arguments);
    let byte = super::bytevectors::byte(call, 0)?;
    let port = output_port(m, call, 1, Content::Binary)?;
    on_output(m, call, &port, |output, m| output.write(m, &[byte]))?;
    Ok(Value::UNSPECIFIED)
}

/// `(write-bytevector bytevector [port [start [end]]])`.
fn write_bytevector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("write-bytevector", arguments);
    let length = super::bytevectors::length(call, 0)?;
    let range = call.range(2, length)?;
    let mut all = Vec::new();
    bytes::read(&mut all, super::bytevectors::address(arguments[0]) + range.start, range.len());
    let port = output_port(m, call, 1, Content::Binary)?;
    on_output(m, call, &port, |output, m| output.write(m, &all))?;
    Ok(Value::UNSPECIFIED)
}

fn flush(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let port = match call.optional(0) {
        None => current(m, Role::Output),
        Some(_) => port_at(call, 0, "output port")?.clone(),
    };
    if !port.is_output() {
        return Err(call.wrong(0, "output port"));
    }
    on_output(m, call, &port, |output, m| output.pass_on(m))?;
    Ok(Value::UNSPECIFIED)
}
