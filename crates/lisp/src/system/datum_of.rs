//! From a value to a datum, for `eval`: programs are data.

use crate::number::Number;
use crate::raise::{Raise, Result};
use crate::syntax::datum::{Datum, DatumKind, NumberLiteral, Span};
use crate::value::Value;

/// How deep data nest in what `eval` takes; lists may be of any length.
const NESTING_MAX: usize = 1_000;
/// Pairs and atoms in it: a circular one ends here.
const PARTS_MAX: usize = 10_000_000;

/// The datum that writes `value`.
///
/// # Errors
/// When the value is no program: circular, or nested too deeply.
pub(crate) fn datum_of(value: Value) -> Result<Datum> {
    let mut parts = PARTS_MAX;
    convert(value, NESTING_MAX, &mut parts)
}

fn convert(value: Value, depth: usize, parts: &mut usize) -> Result<Datum> {
    if depth == 0 || *parts == 0 {
        let message = "eval: the expression is circular or nested too deeply";
        return Err(Raise::error(message, Vec::new()));
    }
    *parts -= 1;
    let span = Span::default();
    if value.is_pair() {
        let mut items = Vec::new();
        let mut rest = value;
        while let Some((item, next)) = rest.uncons() {
            items.push(convert(item, depth - 1, parts)?);
            rest = next;
        }
        let end = convert(rest, depth - 1, parts)?;
        return Ok(items
            .into_iter()
            .rev()
            .fold(end, |rest, item| Datum::new(DatumKind::Pair(item, rest), span)));
    }
    let kind = if value.is_nil() {
        DatumKind::Nil
    } else if let Some(symbol) = value.as_symbol() {
        DatumKind::Symbol(symbol)
    } else if value == Value::TRUE || value == Value::FALSE {
        DatumKind::Boolean(value.is_true())
    } else if let Some(c) = value.as_character() {
        DatumKind::Character(c)
    } else if let Some(number) = Number::of(value) {
        DatumKind::Number(literal(number))
    } else if let Some(text) = crate::text::to_rust(value) {
        DatumKind::String(text)
    } else if let Some(length) = value.vector_length() {
        let element = |i| convert(value.vector_ref(i).unwrap_or(Value::FALSE), depth - 1, parts);
        DatumKind::Vector((0..length).map(element).collect::<Result<_>>()?)
    } else {
        return Err(Raise::error("eval: this is no expression", vec![value]));
    };
    Ok(Datum::new(kind, span))
}

fn literal(number: Number) -> NumberLiteral {
    match number {
        Number::Fixnum(n) => NumberLiteral::Integer(n),
        Number::Big(n) => NumberLiteral::Big(n),
        Number::Ratio(n) => NumberLiteral::Ratio(n),
        Number::Real(n) => NumberLiteral::Real(n),
    }
}
