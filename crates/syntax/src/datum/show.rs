//! Data in messages: written as in a program, and shortened if they are long.

use super::{Datum, DatumKind, NumberLiteral};
use core::fmt::{self, Write};

/// Maximum length of a datum in a message, in bytes of UTF-8.
const SHOWN_MAX: usize = 120;
/// Maximum number of levels of nesting in a message.
const SHOWN_DEPTH: u32 = 12;

/// Collects text up to a limit. Its error means that the limit is reached.
struct Cut {
    text: String,
}

impl Write for Cut {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.text.push_str(part);
        if self.text.len() > SHOWN_MAX { Err(fmt::Error) } else { Ok(()) }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cut = Cut { text: String::new() };
        if write(&mut cut, self, SHOWN_DEPTH).is_err() {
            let end =
                cut.text.char_indices().map(|(at, _)| at).take_while(|&at| at <= SHOWN_MAX).last();
            cut.text.truncate(end.unwrap_or(0));
            cut.text.push_str("...");
        }
        f.write_str(&cut.text)
    }
}

fn write(out: &mut Cut, datum: &Datum, depth: u32) -> fmt::Result {
    let Some(depth) = depth.checked_sub(1) else { return out.write_str("...") };
    match &*datum.kind {
        DatumKind::Boolean(truth) => out.write_str(if *truth { "#t" } else { "#f" }),
        DatumKind::Character(c) => write!(out, "#\\{c}"),
        DatumKind::String(text) => write!(out, "{text:?}"),
        DatumKind::Symbol(symbol) => out.write_str(symbol.name()),
        DatumKind::Alias(alias) => write!(out, "{}", alias.of),
        DatumKind::Number(number) => write!(out, "{number}"),
        DatumKind::Nil => out.write_str("()"),
        DatumKind::Pair(..) => write_pair(out, datum, depth),
        DatumKind::Vector(items) => {
            out.write_str("#")?;
            write_items(out, items.iter(), depth)?;
            out.write_str(")")
        }
        DatumKind::Bytevector(bytes) => {
            out.write_str("#u8(")?;
            for (index, byte) in bytes.iter().enumerate() {
                let space = if index == 0 { "" } else { " " };
                write!(out, "{space}{byte}")?;
            }
            out.write_str(")")
        }
        DatumKind::Label(label, inner) => {
            write!(out, "#{label}=")?;
            write(out, inner, depth)
        }
        DatumKind::Reference(label) => write!(out, "#{label}#"),
    }
}

fn write_pair(out: &mut Cut, datum: &Datum, depth: u32) -> fmt::Result {
    if let Some((prefix, quoted)) = abbreviation(datum) {
        out.write_str(prefix)?;
        return write(out, quoted, depth);
    }
    let mut elements = datum.elements();
    write_items(out, elements.by_ref(), depth)?;
    if !elements.tail().is_nil() {
        out.write_str(" . ")?;
        write(out, elements.tail(), depth)?;
    }
    out.write_str(")")
}

fn write_items<'a>(
    out: &mut Cut,
    items: impl Iterator<Item = &'a Datum>,
    depth: u32,
) -> fmt::Result {
    out.write_str("(")?;
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.write_str(" ")?;
        }
        write(out, item, depth)?;
    }
    Ok(())
}

fn abbreviation(datum: &Datum) -> Option<(&'static str, &Datum)> {
    let items = datum.as_pair()?;
    let (quoted, end) = items.1.as_pair()?;
    if !end.is_nil() {
        return None;
    }
    let prefix = match items.0.as_symbol()?.name() {
        "quote" => "'",
        "quasiquote" => "`",
        "unquote" => ",",
        "unquote-splicing" => ",@",
        _ => return None,
    };
    Some((prefix, quoted))
}

impl fmt::Display for NumberLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(n) => write!(f, "{n}"),
            Self::Big(n) => write!(f, "{n}"),
            Self::Ratio(ratio) => write!(f, "{ratio}"),
            Self::Real(x) if x.is_nan() => f.write_str("+nan.0"),
            Self::Real(x) if x.is_infinite() => {
                f.write_str(if *x > 0.0 { "+inf.0" } else { "-inf.0" })
            }
            Self::Real(x) => write!(f, "{x:?}"),
            Self::Complex(parts) => write_complex(f, &parts[0], &parts[1]),
        }
    }
}

fn write_complex(
    f: &mut fmt::Formatter<'_>,
    real: &NumberLiteral,
    imaginary: &NumberLiteral,
) -> fmt::Result {
    if *real != NumberLiteral::Integer(0) {
        write!(f, "{real}")?;
    }
    let digits = match imaginary {
        NumberLiteral::Integer(1) => "+".to_owned(),
        NumberLiteral::Integer(-1) => "-".to_owned(),
        _ => imaginary.to_string(),
    };
    let sign = if digits.starts_with(['+', '-']) { "" } else { "+" };
    write!(f, "{sign}{digits}i")
}
