//! Order of numbers. An exact and an inexact number are compared exactly, so that `<` is
//! transitive. This is possible because a flonum is a binary fraction.

use super::arithmetic::reals;
use super::{Number, is_number, parts, short};
use crate::raise::Result;
use crate::value::Value;
use core::cmp::Ordering;
use kyocho_bignum::ratio;

/// Integers up to this magnitude convert to a flonum without rounding.
const EXACT_AS_REAL_MAX: i64 = 1 << 53;

/// The order of `a` and `b`; `None` if one is a NaN.
///
/// # Errors
/// One is not a real number. `position` is the position of `a` among the arguments of `who`, from
/// 1.
#[inline]
pub fn compare(who: &'static str, position: usize, a: Value, b: Value) -> Result<Option<Ordering>> {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        return Ok(Some(x.cmp(&y)));
    }
    if let Some((x, y)) = reals(a, b)
        && fits(a)
        && fits(b)
    {
        return Ok(x.partial_cmp(&y));
    }
    if let (Some(x), Some(y)) = (short(a), short(b)) {
        return Ok(Some(x.cmp(&y)));
    }
    let x = Number::argument(who, position, a)?;
    let y = Number::argument(who, position + 1, b)?;
    Ok(order(x, y))
}

/// Whether `a < b`, for the machine.
///
/// # Errors
/// One is not a real number.
pub fn less(who: &'static str, a: Value, b: Value) -> Result<bool> {
    Ok(compare(who, 1, a, b)? == Some(Ordering::Less))
}

/// Whether `a > b`, for the machine.
///
/// # Errors
/// One is not a real number.
pub fn greater(who: &'static str, a: Value, b: Value) -> Result<bool> {
    Ok(compare(who, 1, a, b)? == Some(Ordering::Greater))
}

/// Whether `a = b`, for the machine.
///
/// # Errors
/// One is not a number.
pub fn equal(a: Value, b: Value) -> Result<bool> {
    same(1, a, b)
}

/// Whether `a = b`, also for complex numbers.
///
/// # Errors
/// One is not a number. `position` is the position of `a` among the arguments of `=`, from 1.
#[inline]
pub fn same(position: usize, a: Value, b: Value) -> Result<bool> {
    match compare("=", position, a, b) {
        Ok(order) => Ok(order == Some(Ordering::Equal)),
        // This test comes last, so that two real numbers do not pay for it.
        Err(_) if is_number(a) && is_number(b) => complex_same(a, b),
        Err(raise) => Err(raise),
    }
}

fn complex_same(a: Value, b: Value) -> Result<bool> {
    let ((real_a, imaginary_a), (real_b, imaginary_b)) = (parts(a), parts(b));
    let equal = Some(Ordering::Equal);
    Ok(compare("=", 1, real_a, real_b)? == equal
        && compare("=", 1, imaginary_a, imaginary_b)? == equal)
}

fn fits(value: Value) -> bool {
    value.as_fixnum().is_none_or(|n| n.abs() <= EXACT_AS_REAL_MAX)
}

/// The order of two numbers; `None` if one is a NaN.
pub(super) fn order(x: Number, y: Number) -> Option<Ordering> {
    match (x, y) {
        (Number::Fixnum(x), Number::Fixnum(y)) => Some(x.cmp(&y)),
        (Number::Real(x), Number::Real(y)) => x.partial_cmp(&y),
        (Number::Real(x), y) => exact_to_real(y, x).map(Ordering::reverse),
        (x, Number::Real(y)) => exact_to_real(x, y),
        (Number::Ratio(x), y) => Some(ratio::order(&x, &y.into_ratio()?)),
        (x, Number::Ratio(y)) => Some(ratio::order(&x.into_ratio()?, &y)),
        (x, y) => Some(x.into_big()?.cmp(&y.into_big()?)),
    }
}

fn exact_to_real(exact: Number, real: f64) -> Option<Ordering> {
    if real.is_nan() {
        return None;
    }
    if real.is_infinite() {
        return Some(if real > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    order(exact, Number::Ratio(Number::Real(real).into_ratio()?))
}
