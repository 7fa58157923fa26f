//! Reading from ports.

use super::Primitive;
use super::call::Call;
use super::ports::port_at;
use crate::port::{Characters, Content, Input, Port, Role, current};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::text::{self, bytes};
use kyocho_heap::value::Value;
use kyocho_syntax::error::SyntaxError;
use kyocho_syntax::reader::{ReadError, Reader};
use std::io::{self, ErrorKind};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::between("read-char", 0, 1, |m, a| {
        let read = |input: &mut Input, m: &mut Mutator| input.read_char(m);
        character(on_text(m, Call::new("read-char", a), 0, read)?)
    }),
    Primitive::between("peek-char", 0, 1, |m, a| {
        let peek = |input: &mut Input, m: &mut Mutator| input.peek_char(m);
        character(on_text(m, Call::new("peek-char", a), 0, peek)?)
    }),
    Primitive::between("read-line", 0, 1, |m, a| {
        let call = Call::new("read-line", a);
        let port = input_port(m, call, 0, Content::Textual)?;
        on_whole(m, call, &port, |input, m| input.read_line(m), string)
    }),
    Primitive::between("read-string", 1, 2, read_string),
    Primitive::between("char-ready?", 0, 1, |m, a| {
        let ready = |input: &mut Input, m: &mut Mutator| Ok(input.is_ready(m));
        Ok(Value::boolean(on_text(m, Call::new("char-ready?", a), 0, ready)?))
    }),
    Primitive::between("read-u8", 0, 1, |m, a| {
        let read = |input: &mut Input, m: &mut Mutator| input.read_byte(m);
        byte(on_bytes(m, Call::new("read-u8", a), 0, read)?)
    }),
    Primitive::between("peek-u8", 0, 1, |m, a| {
        let peek = |input: &mut Input, m: &mut Mutator| input.peek_byte(m);
        byte(on_bytes(m, Call::new("peek-u8", a), 0, peek)?)
    }),
    Primitive::between("u8-ready?", 0, 1, |m, a| {
        let ready = |input: &mut Input, m: &mut Mutator| Ok(input.is_ready(m));
        Ok(Value::boolean(on_bytes(m, Call::new("u8-ready?", a), 0, ready)?))
    }),
    Primitive::between("read-bytevector", 1, 2, read_bytevector),
    Primitive::between("read-bytevector!", 1, 4, read_bytevector_into),
    Primitive::between("read", 0, 1, read),
];

type Operation<T> = fn(&mut Input, &mut Mutator) -> io::Result<T>;

/// The open input port in argument `i`, or the current one, with this content.
fn input_port(m: &mut Mutator, call: Call<'_>, i: usize, content: Content) -> Result<Port> {
    let expected = match content {
        Content::Textual => "textual input port",
        Content::Binary => "binary input port",
    };
    let port = match call.optional(i) {
        None => current(m, Role::Input),
        Some(_) => port_at(call, i, expected)?.clone(),
    };
    if !port.is_input() || port.content() != content {
        return Err(match call.optional(i) {
            Some(_) => call.wrong(i, expected),
            None => Raise::error(format!("{}: needs a {expected}", call.who()), Vec::new()),
        });
    }
    Ok(port)
}

/// Runs `operation` on the open input end of a port.
fn on_input<T>(
    m: &mut Mutator,
    call: Call<'_>,
    port: &Port,
    operation: impl FnOnce(&mut Input, &mut Mutator) -> io::Result<T>,
) -> Result<T> {
    let Some(mut input) = port.input(m)? else {
        return Err(Raise::error(format!("{}: not an input port", call.who()), Vec::new()));
    };
    if !input.is_open() {
        return Err(closed(call, port));
    }
    operation(&mut input, m).map_err(|error| port.refused(call.who(), &error))
}

/// As [`on_input`], for results that need memory. If memory is out, nothing has been read.
fn on_whole<T>(
    m: &mut Mutator,
    call: Call<'_>,
    port: &Port,
    operation: impl FnOnce(&mut Input, &mut Mutator) -> io::Result<T>,
    store: impl FnOnce(&mut Mutator, T) -> Result,
) -> Result {
    let Some(mut input) = port.input(m)? else {
        return Err(Raise::error(format!("{}: not an input port", call.who()), Vec::new()));
    };
    if !input.is_open() {
        return Err(closed(call, port));
    }
    let mut stored = Ok(Value::EOF);
    let read = input.attempt(|input| {
        stored = operation(input, m).map(|read| store(m, read))?;
        match &stored {
            Err(raise) if raise.is_out_of_memory() => Err(ErrorKind::OutOfMemory.into()),
            Err(raise) if raise.is_interruption() => Err(ErrorKind::Interrupted.into()),
            _ => Ok(()),
        }
    });
    stored.and_then(|value| read.map(|()| value).map_err(|error| port.refused(call.who(), &error)))
}

#[cold]
pub(super) fn closed(call: Call<'_>, port: &Port) -> Raise {
    Raise::error(format!("{}: the port is closed: {}", call.who(), port.name()), Vec::new())
}

fn on_text<T>(m: &mut Mutator, call: Call<'_>, i: usize, operation: Operation<T>) -> Result<T> {
    let port = input_port(m, call, i, Content::Textual)?;
    on_input(m, call, &port, operation)
}

fn on_bytes<T>(m: &mut Mutator, call: Call<'_>, i: usize, operation: Operation<T>) -> Result<T> {
    let port = input_port(m, call, i, Content::Binary)?;
    on_input(m, call, &port, operation)
}

fn character(read: Option<char>) -> Result {
    Ok(read.map_or(Value::EOF, Value::character))
}

fn byte(read: Option<u8>) -> Result {
    Ok(read.map_or(Value::EOF, |byte| Value::fixnum(i64::from(byte))))
}

fn string(m: &mut Mutator, read: Option<String>) -> Result {
    match read {
        Some(text) => text::new_in_parts(m, &text),
        None => Ok(Value::EOF),
    }
}

fn read_string(m: &mut Mutator, arguments: &[Value]) -> Result {
    // R7RS has the count first. Many systems had the port first, and the two cannot be confused.
    let swapped;
    let arguments = match arguments {
        [port, count] if count.is_fixnum() => {
            swapped = [*count, *port];
            &swapped
        }
        _ => arguments,
    };
    let call = Call::new("read-string", arguments);
    let count = call.count_at(0)?;
    let port = input_port(m, call, 1, Content::Textual)?;
    on_whole(m, call, &port, |input, m| input.read_string(m, count), string)
}

fn read_bytevector(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("read-bytevector", arguments);
    let count = call.count_at(0)?;
    let port = input_port(m, call, 1, Content::Binary)?;
    let read = |input: &mut Input, m: &mut Mutator| input.read_bytes(m, count);
    on_whole(m, call, &port, read, |m, bytes| match bytes.is_empty() && count > 0 {
        true => Ok(Value::EOF),
        false => Ok(m.bytevector(&bytes)?),
    })
}

fn read_bytevector_into(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("read-bytevector!", arguments);
    let length = super::bytevectors::mutable(call, 0)?;
    let range = call.range(2, length)?;
    let port = input_port(m, call, 1, Content::Binary)?;
    let read = on_input(m, call, &port, |input, m| input.read_bytes(m, range.len()))?;
    if read.is_empty() && !range.is_empty() {
        return Ok(Value::EOF);
    }
    bytes::write(super::bytevectors::address(arguments[0]) + range.start, &read);
    Ok(Value::fixnum(read.len() as i64))
}

fn read(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("read", arguments);
    let port = input_port(m, call, 0, Content::Textual)?;
    let read = |input: &mut Input, m: &mut Mutator| {
        let source = input.source_number(port.name());
        let (line, column) = input.place();
        let characters = Characters::new(m, input);
        let mut reader = Reader::new(characters, source).at(line, column);
        let datum = reader.read();
        let characters = reader.into_characters();
        if let Ok(None) = datum {
            characters.input.report_end();
        }
        characters.error.map_or(Ok(datum), Err)
    };
    on_whole(m, call, &port, read, |m, datum| match datum {
        Ok(Some(datum)) => {
            let value = m.literal(&datum)?;
            // Dropping long data takes time.
            m.keeping(&[value], |m| {
                m.compute_outside(|| drop(datum));
                Ok(value)
            })
        }
        Ok(None) => Ok(Value::EOF),
        Err(ReadError::Incomplete(error) | ReadError::Wrong(error)) => Err(read_error(&error)),
    })
}

#[cold]
fn read_error(error: &SyntaxError) -> Raise {
    let message = match error.expectation() {
        Some(expected) => format!("{}; expected {expected}", error.message()),
        None => error.message().to_owned(),
    };
    Raise::new(Cause::Read { message, span: error.span() })
}
