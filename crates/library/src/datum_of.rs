//! From a value to a datum, for `eval`.

use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::heap::pause::{PART, parts};
use kyocho_heap::number::{self, Number};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::text::bytes;
use kyocho_heap::value::Value;
use kyocho_syntax::datum::{Datum, DatumKind, NumberLiteral, Span};

/// Maximum number of levels of nesting in an argument of `eval`. The length of lists is not
/// limited.
const NESTING_MAX: usize = 100_000;
/// Maximum number of steps of the conversion, two for each part. Ends the conversion of circular
/// data.
const STEPS_MAX: usize = 20_000_000;

enum Step {
    Convert(Value),
    /// The rest of a list, after the items that are on the result stack.
    Rest(Value, usize),
    /// A list: this many items are on the result stack, below its tail.
    List(usize),
    /// A vector, of which this many elements are on the result stack.
    Elements(Value, usize),
}

/// The datum for `value`, which is kept alive. Does not recurse, because a value may be nested
/// deeper than the native stack allows.
///
/// # Errors
/// When the value is no program: circular, or nested too deeply; or as [`Mutator::pause`] tells.
pub fn datum_of(m: &mut Mutator, value: Value) -> Result<Datum> {
    let mut results = Vec::new();
    let converted = convert(m, value, &mut results);
    let datum = results.pop();
    // Dropping long data takes time.
    m.compute_outside(|| drop(results));
    match (converted, datum) {
        (Ok(()), Some(datum)) => Ok(datum),
        (Err(raise), left) => {
            m.compute_outside(|| drop(left));
            Err(raise)
        }
        (Ok(()), None) => Err(no_expression(value)),
    }
}

/// Leaves the datum on the result stack.
fn convert(m: &mut Mutator, value: Value, results: &mut Vec<Datum>) -> Result<()> {
    let span = Span::default();
    let mut steps = vec![Step::Convert(value)];
    let mut done = 0_usize;
    while let Some(step) = steps.pop() {
        match step {
            Step::Convert(value) if value.is_pair() => steps.push(Step::Rest(value, 0)),
            Step::Convert(value) if value.vector_length().is_some() => {
                steps.push(Step::Elements(value, 0));
            }
            Step::Convert(value) => results.push(Datum::new(atom(value)?, span)),
            Step::Rest(rest, items) => steps.extend(match rest.uncons() {
                Some((item, rest)) => [Step::Rest(rest, items + 1), Step::Convert(item)],
                None => [Step::List(items), Step::Convert(rest)],
            }),
            Step::List(items) => list(m, items, results, &steps)?,
            Step::Elements(vector, from) => match vector.vector_ref(from) {
                Some(element) => {
                    steps.extend([Step::Elements(vector, from + 1), Step::Convert(element)]);
                }
                None => {
                    let elements = results.split_off(results.len() - from);
                    results.push(Datum::new(DatumKind::Vector(elements), span));
                }
            },
        }
        done += 1;
        if done >= STEPS_MAX || steps.len() > NESTING_MAX {
            let message = format!(
                "eval: the expression is circular, or nested deeper than {NESTING_MAX} levels"
            );
            return Err(Raise::error(message, Vec::new()));
        }
        if done.is_multiple_of(PART) {
            pause(m, &steps)?;
        }
    }
    Ok(())
}

/// Makes a list of the last `items` results below its tail.
fn list(m: &mut Mutator, items: usize, results: &mut Vec<Datum>, steps: &[Step]) -> Result<()> {
    let span = Span::default();
    let mut list = results.pop().unwrap_or_else(|| Datum::nil(span));
    for part in parts(0..items) {
        let is_whole = part.len() == PART;
        for _ in part {
            let item = results.pop().unwrap_or_else(|| Datum::nil(span));
            list = Datum::pair(item, list, span);
        }
        if is_whole {
            results.push(list);
            pause(m, steps)?;
            list = results.pop().unwrap_or_else(|| Datum::nil(span));
        }
    }
    results.push(list);
    Ok(())
}

/// A pause that keeps the values still to be converted, which may be removed from their containers
/// meanwhile.
fn pause(m: &mut Mutator, steps: &[Step]) -> Result<()> {
    let values = steps.iter().filter_map(|step| match step {
        Step::Convert(value) | Step::Rest(value, _) | Step::Elements(value, _) => Some(*value),
        Step::List(_) => None,
    });
    m.pause_with(&mut values.collect())
}

#[cold]
fn no_expression(value: Value) -> Raise {
    Raise::error("eval: this is no expression", vec![value])
}

/// The datum for a value without parts.
fn atom(value: Value) -> Result<DatumKind> {
    Ok(if value.is_nil() {
        DatumKind::Nil
    } else if let Some(symbol) = value.as_symbol() {
        DatumKind::Symbol(symbol)
    } else if value == Value::TRUE || value == Value::FALSE {
        DatumKind::Boolean(value.is_true())
    } else if let Some(c) = value.as_character() {
        DatumKind::Character(c)
    } else if let Some(number) = literal(value) {
        DatumKind::Number(number)
    } else if let Some(text) = kyocho_heap::text::to_rust(value) {
        DatumKind::String(text)
    } else if let Some(length) = value.bytevector_length() {
        DatumKind::Bytevector(bytes_of(value, length))
    } else {
        return Err(no_expression(value));
    })
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
