//! From a value to a datum, for `eval`: programs are data.

use crate::heap::object::Kind;
use crate::number::{self, Number};
use crate::raise::{Raise, Result};
use crate::syntax::datum::{Datum, DatumKind, NumberLiteral, Span};
use crate::text::bytes;
use crate::value::Value;

/// How deep data nest in what `eval` takes; lists may be of any length.
const NESTING_MAX: usize = 100_000;
/// Pairs and atoms in it: a circular one ends here.
const PARTS_MAX: usize = 10_000_000;

enum Step {
    Convert(Value),
    /// So many items lie on the results, and the tail above them.
    List(usize),
    Vector(usize),
}

/// The datum that writes `value`. No recursion: a value may be nested deeper than the native stack.
///
/// # Errors
/// When the value is no program: circular, or nested too deeply.
pub(crate) fn datum_of(value: Value) -> Result<Datum> {
    let span = Span::default();
    let (mut parts, mut open) = (0, 0);
    let mut steps = vec![Step::Convert(value)];
    let mut results = Vec::new();
    while let Some(step) = steps.pop() {
        match step {
            Step::Convert(value) => match atom(value)? {
                Some(kind) => results.push(Datum::new(kind, span)),
                None => {
                    open += 1;
                    parts += expand(value, &mut steps, PARTS_MAX - parts);
                }
            },
            Step::List(items) => {
                open -= 1;
                let tail = results.pop().unwrap_or_else(|| Datum::new(DatumKind::Nil, span));
                let items = results.split_off(results.len() - items);
                results.push(Datum::list_with_tail(items, tail, span));
            }
            Step::Vector(items) => {
                open -= 1;
                let items = results.split_off(results.len() - items);
                results.push(Datum::new(DatumKind::Vector(items), span));
            }
        }
        if parts >= PARTS_MAX || open > NESTING_MAX {
            let message = format!(
                "eval: the expression is circular, or nested deeper than {NESTING_MAX} levels"
            );
            return Err(Raise::error(message, Vec::new()));
        }
    }
    results.pop().ok_or_else(|| Raise::error("eval: this is no expression", vec![value]))
}

/// Puts the parts of a pair or vector on the steps, so that they come off left to right; how many
/// they are, `parts_max` at most.
fn expand(value: Value, steps: &mut Vec<Step>, parts_max: usize) -> usize {
    if let Some(length) = value.vector_length() {
        steps.push(Step::Vector(length));
        let elements = (0..length).rev().map(|i| value.vector_ref(i).unwrap_or(Value::FALSE));
        steps.extend(elements.map(Step::Convert));
        return length;
    }
    let mut items = Vec::new();
    let mut rest = value;
    while let Some((item, next)) = rest.uncons() {
        items.push(item);
        rest = next;
        if items.len() >= parts_max {
            break;
        }
    }
    let length = items.len();
    steps.push(Step::List(length));
    steps.push(Step::Convert(rest));
    steps.extend(items.into_iter().rev().map(Step::Convert));
    length
}

/// What a value without parts writes; `None` for a pair or a vector.
fn atom(value: Value) -> Result<Option<DatumKind>> {
    Ok(Some(if value.is_pair() || value.vector_length().is_some() {
        return Ok(None);
    } else if value.is_nil() {
        DatumKind::Nil
    } else if let Some(symbol) = value.as_symbol() {
        DatumKind::Symbol(symbol)
    } else if value == Value::TRUE || value == Value::FALSE {
        DatumKind::Boolean(value.is_true())
    } else if let Some(c) = value.as_character() {
        DatumKind::Character(c)
    } else if let Some(number) = literal(value) {
        DatumKind::Number(number)
    } else if let Some(text) = crate::text::to_rust(value) {
        DatumKind::String(text)
    } else if let Some(length) = value.bytevector_length() {
        DatumKind::Bytevector(bytes_of(value, length))
    } else {
        return Err(Raise::error("eval: this is no expression", vec![value]));
    }))
}

fn bytes_of(bytevector: Value, length: usize) -> Vec<u8> {
    let mut all = Vec::new();
    bytes::read(&mut all, bytes::payload(bytevector) + size_of::<Value>(), length);
    all
}

fn literal(value: Value) -> Option<NumberLiteral> {
    if !value.is_kind(Kind::Complex) {
        return real_literal(value);
    }
    let (real, imaginary) = number::parts(value);
    Some(NumberLiteral::Complex(Box::new([real_literal(real)?, real_literal(imaginary)?])))
}

fn real_literal(value: Value) -> Option<NumberLiteral> {
    Some(match Number::of(value)? {
        Number::Fixnum(n) => NumberLiteral::Integer(n),
        Number::Big(n) => NumberLiteral::Big(n),
        Number::Ratio(n) => NumberLiteral::Ratio(n),
        Number::Real(n) => NumberLiteral::Real(n),
    })
}
