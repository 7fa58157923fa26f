//! Conversion between exact and inexact numbers, and rounding to integers.

use super::division::truncated;
use super::{Number, Pause, is_complex, parts, rectangular, store_big};
use crate::heap::Mutator;
use crate::raise::{Raise, Result};
use crate::value::Value;
use core::cmp::Ordering;
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

/// The direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceiling,
    /// Towards zero.
    Truncate,
    /// To the nearest, ties to even.
    Round,
}

impl Rounding {
    /// The procedure's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Ceiling => "ceiling",
            Self::Truncate => "truncate",
            Self::Round => "round",
        }
    }
}

/// The exact number equal to `value`. Flonums are binary fractions, so the conversion loses
/// nothing.
///
/// # Errors
/// `value` is not a number, or is infinite, or a NaN.
pub fn exact(m: &mut Mutator, value: Value) -> Result {
    if value.is_fixnum() {
        return Ok(value);
    }
    if is_complex(value) {
        return by_parts(m, value, exact);
    }
    match Number::argument("exact", 1, value)? {
        Number::Real(x) => {
            // Up to 2^53 the conversion is exact, and so is the test for a fraction.
            if x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0 {
                return Ok(Value::fixnum(x as i64));
            }
            let ratio = real_to_ratio(x)
                .ok_or_else(|| Raise::wrong_type("exact", 1, "finite number", value))?;
            Number::Ratio(ratio).store(m)
        }
        _ => Ok(value),
    }
}

/// The flonum nearest to `value`.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn inexact(m: &mut Mutator, value: Value) -> Result {
    if is_complex(value) {
        return by_parts(m, value, inexact);
    }
    match Number::argument("inexact", 1, value)? {
        Number::Real(_) => Ok(value),
        number => Ok(m.flonum(number.to_real())?),
    }
}

fn by_parts(m: &mut Mutator, value: Value, convert: fn(&mut Mutator, Value) -> Result) -> Result {
    let (real, imaginary) = parts(value);
    let (real, imaginary) = (convert(m, real)?, convert(m, imaginary)?);
    rectangular(m, real, imaginary)
}

/// `value` rounded to an integer of the same exactness.
///
/// # Errors
/// `value` is not a number.
pub fn rounded(m: &mut Mutator, rounding: Rounding, value: Value) -> Result {
    match Number::argument(rounding.name(), 1, value)? {
        Number::Fixnum(_) | Number::Big(_) => Ok(value),
        Number::Real(x) => Ok(m.flonum(round_real(rounding, x))?),
        Number::Ratio(r) => {
            let integer = round_ratio(rounding, &r, &mut || m.pause(&[]))?;
            store_big(m, &integer)
        }
    }
}

fn round_real(rounding: Rounding, x: f64) -> f64 {
    match rounding {
        Rounding::Floor => x.floor(),
        Rounding::Ceiling => x.ceil(),
        Rounding::Truncate => x.trunc(),
        Rounding::Round => x.round_ties_even(),
    }
}

/// A ratio rounded to an integer. Its denominator is positive.
fn round_ratio(rounding: Rounding, r: &BigRational, pause: Pause<'_>) -> Result<BigInt> {
    let (truncated, rest) = truncated(r.numer(), r.denom(), pause)?;
    let is_away = match rounding {
        Rounding::Floor => rest.is_negative(),
        Rounding::Ceiling => rest.is_positive(),
        Rounding::Truncate => false,
        Rounding::Round => match (rest.magnitude() << 1u32).cmp(r.denom().magnitude()) {
            Ordering::Less => false,
            Ordering::Equal => truncated.is_odd(),
            Ordering::Greater => true,
        },
    };
    Ok(if is_away { truncated + rest.signum() } else { truncated })
}

/// The exact value of a flonum; `None` for an infinity or a NaN.
pub(super) fn real_to_ratio(x: f64) -> Option<BigRational> {
    BigRational::from_float(x)
}

/// The flonum nearest to a ratio, with ties to even and gradual underflow.
///
/// The integer quotient has more bits than a flonum. Its last bit is sticky: it is set if any
/// further bit is. Then one rounding follows: by the hardware, or here if the flonum is subnormal.
pub(super) fn ratio_to_real(r: &BigRational) -> f64 {
    let (numerator, denominator) = (r.numer().magnitude(), r.denom().magnitude());
    // The magnitude is between 2^(exponent - 1) and 2^(exponent + 1).
    let exponent = numerator.bits() as i64 - denominator.bits() as i64;
    let magnitude = if exponent > 1025 {
        f64::INFINITY
    } else if exponent >= -1021 {
        let shift = 62 - exponent;
        let quotient = sticky_quotient(numerator, denominator, shift);
        // Two exact steps, so that neither factor exceeds the range of a flonum.
        quotient as f64 * power_of_two(-shift / 2) * power_of_two(-shift - -shift / 2)
    } else {
        // Units of 2^-1076: two bits below the smallest subnormal.
        let quotient = sticky_quotient(numerator, denominator, 1076);
        let (kept, low) = (quotient >> 2, quotient & 3);
        let up = low == 3 || low == 2 && kept & 1 == 1;
        (kept + u64::from(up)) as f64 * SMALLEST
    };
    if r.is_negative() { -magnitude } else { magnitude }
}

/// 2^-1074.
const SMALLEST: f64 = f64::from_bits(1);

/// `numerator * 2^shift / denominator`, truncated. The lowest bit is set if the truncation lost
/// anything. The caller chooses `shift` so that the result fits 64 bits.
fn sticky_quotient(numerator: &BigUint, denominator: &BigUint, shift: i64) -> u64 {
    let (quotient, rest) = if shift >= 0 {
        (numerator << shift.unsigned_abs()).div_rem(denominator)
    } else {
        numerator.div_rem(&(denominator << shift.unsigned_abs()))
    };
    quotient.to_u64().unwrap_or(u64::MAX) | u64::from(!rest.is_zero())
}

fn power_of_two(exponent: i64) -> f64 {
    2f64.powi(exponent as i32)
}
