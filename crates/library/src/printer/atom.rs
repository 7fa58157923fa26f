//! Printing of values without parts.

use super::Style;
use crate::port::Port;
use core::fmt::Write;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::number;
use kyocho_heap::text::{self, Text};
use kyocho_heap::value::Value;
use kyocho_syntax as syntax;
use kyocho_vm::machine::{condition, procedure};

/// Appends the text of a value that is not a pair, vector or record.
pub(super) fn print(out: &mut String, value: Value, style: Style) {
    if let Some(n) = value.as_fixnum() {
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "{n}");
    } else if let Some(symbol) = value.as_symbol() {
        match style {
            Style::Display => out.push_str(symbol.name()),
            _ => write_symbol(out, symbol.name()),
        }
    } else if let Some(c) = value.as_character() {
        match style {
            Style::Display => out.push(c),
            _ => write_character(out, c),
        }
    } else if let Some(kind) = value.kind() {
        object(out, value, kind, style);
    } else {
        out.push_str(immediate(value));
    }
}

fn immediate(value: Value) -> &'static str {
    match value {
        Value::NIL => "()",
        Value::TRUE => "#t",
        Value::FALSE => "#f",
        Value::EOF => "#<eof>",
        Value::UNSPECIFIED => "#<unspecified>",
        _ => "#<internal>",
    }
}

fn object(out: &mut String, value: Value, kind: Kind, style: Style) {
    match kind {
        Kind::Flonum => number::format_real(out, value.as_flonum().unwrap_or(f64::NAN)),
        Kind::Bignum | Kind::Ratio | Kind::Complex => out.push_str(&number::text_of(value, 10)),
        Kind::String => match (Text::of(value), style) {
            (Some(text), Style::Display) => text.push_to(out, 0..text.length()),
            (Some(text), _) => write_string(out, text.chars()),
            (None, _) => {}
        },
        Kind::Bytevector => bytevector(out, value),
        _ => opaque(out, value, kind),
    }
}

fn bytevector(out: &mut String, value: Value) {
    out.push_str("#u8(");
    for (i, byte) in value.to_bytes().unwrap_or_default().iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let _ = write!(out, "{byte}");
    }
    out.push(')');
}

/// Objects whose text cannot be read back: kind and name, or the address if there is no name.
fn opaque(out: &mut String, value: Value, kind: Kind) {
    if let Some(name) = procedure::name_of(value) {
        let _ = write!(out, "#<procedure {name}>");
        return;
    }
    let name = match kind {
        Kind::Closure | Kind::Primitive | Kind::Code | Kind::Parameter => "procedure",
        Kind::Continuation => "continuation",
        Kind::RecordType => {
            let _ = write!(out, "#<record-type {}>", type_name(value));
            return;
        }
        Kind::Promise => "promise",
        Kind::Values => "values",
        Kind::HashTable => "hash-table",
        Kind::Ephemeron => "ephemeron",
        Kind::Mutex => "mutex",
        Kind::Condvar => "condition-variable",
        Kind::Thread => "thread",
        Kind::Channel => "channel",
        Kind::Environment => "environment",
        Kind::Condition => {
            out.push_str("#<error");
            // Parts that are objects themselves are not printed here.
            let is_plain = |message: &Value| {
                !message.is_pair() && message.kind().is_none_or(|kind| kind == Kind::String)
            };
            if let Some(message) = value.field(condition::FIELD_MESSAGE).filter(is_plain) {
                out.push_str(": ");
                print(out, message, Style::Display);
            }
            out.push('>');
            return;
        }
        Kind::Foreign => match value.as_foreign::<Port>() {
            Some(port) => {
                let _ = write!(out, "#<{port}>");
                return;
            }
            None => "foreign",
        },
        _ => "object",
    };
    let _ = write!(out, "#<{name} {:x}>", value.address());
}

/// The name of a record type: its first word, a symbol or a string.
fn type_name(record_type: Value) -> String {
    let name = record_type.field(0);
    let text = name.and_then(|name| match name.as_symbol() {
        Some(symbol) => Some(symbol.name().to_owned()),
        None => text::to_rust(name),
    });
    text.unwrap_or_else(|| "record".to_owned())
}

/// The name of a record's type, without angle brackets around it.
pub(super) fn record_name(record: Value) -> String {
    let name = record.field(0).map_or_else(|| "record".to_owned(), type_name);
    name.trim_start_matches('<').trim_end_matches('>').to_owned()
}

/// The name of payload word `i` of a record. The second word of the type is the vector or list of
/// names.
pub(super) fn field_name(record: Value, i: usize) -> Option<String> {
    let names = record.field(0)?.field(1)?;
    let name = match names.vector_length() {
        Some(_) => names.vector_ref(i - 1)?,
        None => {
            let mut rest = names;
            for _ in 1..i {
                rest = rest.cdr()?;
            }
            rest.car()?
        }
    };
    Some(name.as_symbol()?.name().to_owned())
}

/// Appends a character as `#\...`.
pub fn write_character(out: &mut String, c: char) {
    out.push_str("#\\");
    let name = match c {
        '\u{7}' => "alarm",
        '\u{8}' => "backspace",
        '\u{7f}' => "delete",
        '\u{1b}' => "escape",
        '\n' => "newline",
        '\0' => "null",
        '\r' => "return",
        ' ' => "space",
        '\t' => "tab",
        _ if c.is_control() || c.is_whitespace() || is_invisible(c) => {
            let _ = write!(out, "x{:x}", u32::from(c));
            return;
        }
        _ => {
            out.push(c);
            return;
        }
    };
    out.push_str(name);
}

/// Whether a character would combine with the `#\` before it, or is not visible.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
}

/// Appends a string in quotes, with escapes.
pub fn write_string(out: &mut String, text: impl Iterator<Item = char>) {
    out.push('"');
    for c in text {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            _ => push_escaped(out, c),
        }
    }
    out.push('"');
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        _ if c.is_control() => {
            let _ = write!(out, "\\x{:x};", u32::from(c));
        }
        _ => out.push(c),
    }
}

/// Appends a symbol's name, between bars if it would not read back without.
pub fn write_symbol(out: &mut String, name: &str) {
    if reads_as_symbol(name) {
        out.push_str(name);
        return;
    }
    out.push('|');
    for c in name.chars() {
        match c {
            '|' => out.push_str("\\|"),
            '\\' => out.push_str("\\\\"),
            _ => push_escaped(out, c),
        }
    }
    out.push('|');
}

fn reads_as_symbol(name: &str) -> bool {
    let plain = |c: char| {
        !c.is_whitespace()
            && !c.is_control()
            && !matches!(
                c,
                '(' | ')' | '"' | '\'' | '`' | ',' | ';' | '|' | '\\' | '[' | ']' | '{' | '}'
            )
    };
    !name.is_empty()
        && name != "."
        && !name.starts_with('#')
        && name.chars().all(plain)
        && syntax::number::parse(name, 10).is_none()
}
