//! `+ - * /`, comparison, `max`, `min`.

use super::Primitive;
use core::cmp::Ordering;
use kyocho_heap::heap::Mutator;
use kyocho_heap::number::{self, Number};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::at_least("+", 0, |m, a| fold(m, "+", a, Value::fixnum(0), number::add)),
    Primitive::at_least("*", 0, |m, a| fold(m, "*", a, Value::fixnum(1), number::mul)),
    Primitive::at_least("-", 1, subtract),
    Primitive::at_least("/", 1, divide),
    Primitive::at_least("=", 1, all_same),
    Primitive::at_least("<", 1, |_, a| chain("<", a, |o| o == Ordering::Less)),
    Primitive::at_least(">", 1, |_, a| chain(">", a, |o| o == Ordering::Greater)),
    Primitive::at_least("<=", 1, |_, a| chain("<=", a, |o| o != Ordering::Greater)),
    Primitive::at_least(">=", 1, |_, a| chain(">=", a, |o| o != Ordering::Less)),
    Primitive::at_least("max", 1, |m, a| extreme(m, "max", a, Ordering::Greater)),
    Primitive::at_least("min", 1, |m, a| extreme(m, "min", a, Ordering::Less)),
    Primitive::exactly("abs", 1, absolute),
    Primitive::exactly("square", 1, square),
    Primitive::exactly("1+", 1, |m, a| fold(m, "1+", &[a[0], ONE], Value::fixnum(0), number::add)),
    Primitive::exactly("1-", 1, |m, a| subtract(m, &[a[0], ONE])),
];

const ONE: Value = Value::fixnum(1);

type Operation = fn(&mut Mutator, Value, Value) -> Result;

fn fold(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    unit: Value,
    operation: Operation,
) -> Result {
    let Some((&first, rest)) = arguments.split_first() else { return Ok(unit) };
    check(who, 0, first)?;
    fold_from(m, who, first, rest, operation)
}

/// Combines `first`, argument 1, with the other arguments from the left.
fn fold_from(
    m: &mut Mutator,
    who: &'static str,
    first: Value,
    rest: &[Value],
    operation: Operation,
) -> Result {
    let mut result = first;
    for (i, &argument) in rest.iter().enumerate() {
        check(who, i + 1, argument)?;
        result = operation(m, result, argument)?;
    }
    Ok(result)
}

#[inline]
fn check(who: &'static str, i: usize, value: Value) -> Result<()> {
    if number::is_number(value) {
        return Ok(());
    }
    Err(Raise::wrong_type(who, i + 1, "number", value))
}

fn subtract(m: &mut Mutator, arguments: &[Value]) -> Result {
    match arguments {
        [only] => number::negate(m, *only),
        [first, rest @ ..] => {
            check("-", 0, *first)?;
            fold_from(m, "-", *first, rest, number::sub)
        }
        [] => Ok(Value::fixnum(0)),
    }
}

fn divide(m: &mut Mutator, arguments: &[Value]) -> Result {
    match arguments {
        [only] => {
            check("/", 0, *only)?;
            number::div(m, ONE, *only)
        }
        [first, rest @ ..] => {
            check("/", 0, *first)?;
            fold_from(m, "/", *first, rest, number::div)
        }
        [] => Ok(ONE),
    }
}

#[inline]
fn check_real(who: &'static str, i: usize, value: Value) -> Result<()> {
    if number::is_real(value) {
        return Ok(());
    }
    Number::argument(who, i + 1, value).map(|_| ())
}

/// Whether `holds` is true for each argument and the next. All arguments are checked, even after a
/// false comparison.
fn chain(who: &'static str, arguments: &[Value], holds: fn(Ordering) -> bool) -> Result {
    check_real(who, 0, arguments[0])?;
    let mut result = true;
    for (i, pair) in arguments.windows(2).enumerate() {
        let order = number::compare(who, i + 1, pair[0], pair[1])?;
        result &= order.is_some_and(holds);
    }
    Ok(Value::boolean(result))
}

/// `(= z ...)`. All arguments are checked, even after a false comparison.
fn all_same(_: &mut Mutator, arguments: &[Value]) -> Result {
    check("=", 0, arguments[0])?;
    let mut result = true;
    for (i, pair) in arguments.windows(2).enumerate() {
        result &= number::same(i + 1, pair[0], pair[1])?;
    }
    Ok(Value::boolean(result))
}

/// The largest or smallest argument; inexact if any argument is, and a NaN if any argument is one.
fn extreme(m: &mut Mutator, who: &'static str, arguments: &[Value], wanted: Ordering) -> Result {
    check_real(who, 0, arguments[0])?;
    let mut best = arguments[0];
    let mut inexact = best.as_flonum().is_some();
    for (i, &argument) in arguments.iter().enumerate().skip(1) {
        inexact |= argument.as_flonum().is_some();
        match number::compare(who, i, best, argument) {
            Ok(Some(order)) if order == wanted || order == Ordering::Equal => {}
            Ok(Some(_)) => best = argument,
            Ok(None) => {
                best = if argument.as_flonum().is_some_and(f64::is_nan) { argument } else { best }
            }
            Err(_) => return Err(Raise::wrong_type(who, i + 1, "real number", argument)),
        }
    }
    if inexact { number::inexact(m, best) } else { Ok(best) }
}

fn absolute(m: &mut Mutator, arguments: &[Value]) -> Result {
    check_real("abs", 0, arguments[0])?;
    number::magnitude(m, arguments[0])
}

fn square(m: &mut Mutator, arguments: &[Value]) -> Result {
    check("square", 0, arguments[0])?;
    number::mul(m, arguments[0], arguments[0])
}
