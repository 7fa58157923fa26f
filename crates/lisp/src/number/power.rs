//! Powers, roots, logarithms: exact where the result is.

use super::{INTEGER_BITS_MAX, Number, check_bits};
use crate::heap::Mutator;
use crate::raise::{Raise, Result};
use crate::value::Value;
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};

/// What complaints say of a result that would be complex.
const NOT_NEGATIVE: &str = "not negative: there are no complex numbers here";

/// `base` to the power `exponent`.
///
/// # Errors
/// One is no number; zero to a negative power; the result is complex or too long.
pub fn expt(m: &mut Mutator, base: Value, exponent: Value) -> Result {
    let b = Number::argument("expt", 1, base)?;
    let e = Number::argument("expt", 2, exponent)?;
    let result = match (b, e) {
        (Number::Real(b), Number::Fixnum(e)) => Number::Real(real_power(b, e)),
        (b, Number::Fixnum(e)) => exact_power(b, e)?,
        (b, Number::Big(e)) if b.is_exact() => exact_huge_power(&b, &e)?,
        (b, e) => {
            let (x, y) = (b.to_real(), e.to_real());
            if x < 0.0 && y.is_finite() && y.fract() != 0.0 {
                return Err(Raise::out_of_range("expt", 1, base, NOT_NEGATIVE));
            }
            if b.is_exact()
                && let Number::Ratio(e) = &e
                && let Some(root) = exact_root_power(b, e)?
            {
                return root.store(m);
            }
            Number::Real(x.powf(y))
        }
    };
    result.store(m)
}

fn real_power(base: f64, exponent: i64) -> f64 {
    match i32::try_from(exponent) {
        Ok(e) if e.abs() <= 1024 => base.powi(e),
        _ => base.powf(exponent as f64),
    }
}

fn exact_power(base: Number, exponent: i64) -> Result<Number> {
    let base = base.into_ratio().unwrap_or_default();
    if exponent < 0 && base.is_zero() {
        return Err(Raise::divide_by_zero("expt"));
    }
    let length = base.numer().bits().max(base.denom().bits()).saturating_sub(1);
    check_bits(length.saturating_mul(exponent.unsigned_abs()))?;
    let magnitude = exponent.unsigned_abs();
    let numerator = power(base.numer(), magnitude);
    let denominator = power(base.denom(), magnitude);
    // Powers of coprime integers are coprime: no reduction needed, only the sign moved up.
    Ok(Number::Ratio(if exponent >= 0 {
        BigRational::new_raw(numerator, denominator)
    } else if numerator.is_negative() {
        BigRational::new_raw(-denominator, -numerator)
    } else {
        BigRational::new_raw(denominator, numerator)
    }))
}

fn power(base: &BigInt, exponent: u64) -> BigInt {
    if base.is_one() || base.is_zero() && exponent > 0 {
        return base.clone();
    }
    if *base == -BigInt::one() {
        return if exponent.is_multiple_of(2) { BigInt::one() } else { base.clone() };
    }
    Pow::pow(base, exponent)
}

/// An exponent beyond the machine word: only 0, 1 and -1 have such a power.
fn exact_huge_power(base: &Number, exponent: &BigInt) -> Result<Number> {
    let odd = exponent.bit(0);
    match base {
        Number::Fixnum(0) if exponent.is_negative() => Err(Raise::divide_by_zero("expt")),
        Number::Fixnum(0 | 1) => Ok(base.clone()),
        Number::Fixnum(-1) => Ok(Number::Fixnum(if odd { -1 } else { 1 })),
        _ => check_bits(INTEGER_BITS_MAX + 1).map(|()| Number::Fixnum(0)),
    }
}

/// `base` to a power p/2, where `base` has an exact square root.
fn exact_root_power(base: Number, exponent: &BigRational) -> Result<Option<Number>> {
    let (Some(p), Some(2)) = (exponent.numer().to_i64(), exponent.denom().to_i64()) else {
        return Ok(None);
    };
    match base.into_ratio().as_ref().and_then(ratio_root) {
        Some(root) => exact_power(Number::Ratio(root), p).map(Some),
        None => Ok(None),
    }
}

/// The square root: exact for an exact square.
///
/// # Errors
/// `value` is no number, or negative.
pub fn sqrt(m: &mut Mutator, value: Value) -> Result {
    let number = Number::argument("sqrt", 1, value)?;
    if number.sign() < 0 {
        return Err(Raise::out_of_range("sqrt", 1, value, NOT_NEGATIVE));
    }
    if let Number::Real(x) = number {
        return Ok(m.flonum(x.sqrt())?);
    }
    let ratio = number.into_ratio().unwrap_or_default();
    match ratio_root(&ratio) {
        Some(root) => Number::Ratio(root).store(m),
        None => Ok(m.flonum(real_root(&ratio))?),
    }
}

fn ratio_root(ratio: &BigRational) -> Option<BigRational> {
    let numerator = integer_root(ratio.numer().magnitude())?;
    let denominator = integer_root(ratio.denom().magnitude())?;
    Some(BigRational::new_raw(numerator.into(), denominator.into()))
}

fn integer_root(n: &BigUint) -> Option<BigUint> {
    let root = n.sqrt();
    (&root * &root == *n).then_some(root)
}

/// The root of a ratio that may be outside a flonum's range though its root is inside.
fn real_root(ratio: &BigRational) -> f64 {
    let direct = Number::Ratio(ratio.clone()).to_real();
    if direct.is_finite() && direct > 1e-290 {
        return direct.sqrt();
    }
    let length = ratio.numer().bits() as i64 - ratio.denom().bits() as i64;
    let half = length / 2;
    let scale = BigRational::from_integer(BigInt::one() << (2 * half.unsigned_abs()));
    let scaled = if half >= 0 { ratio / scale } else { ratio * scale };
    let root = Number::Ratio(scaled).to_real().sqrt();
    root * 2f64.powi((half / 2) as i32) * 2f64.powi((half - half / 2) as i32)
}

/// The largest `s` with s² <= n, and n - s².
///
/// # Errors
/// `value` is no exact non-negative integer.
pub fn exact_integer_sqrt(value: Value) -> Result<(Number, Number)> {
    let complaint =
        || Raise::wrong_type("exact-integer-sqrt", 1, "exact non-negative integer", value);
    let n = Number::of(value).and_then(Number::into_big).ok_or_else(complaint)?;
    if n.is_negative() {
        return Err(complaint());
    }
    let root = n.sqrt();
    let rest = n - &root * &root;
    Ok((Number::Big(root), Number::Big(rest)))
}

/// e to the power `value`; exactly 1 for an exact zero.
///
/// # Errors
/// `value` is no number.
pub fn exp(m: &mut Mutator, value: Value) -> Result {
    match Number::argument("exp", 1, value)? {
        Number::Fixnum(0) => Ok(Value::fixnum(1)),
        number => Ok(m.flonum(number.to_real().exp())?),
    }
}

/// The natural logarithm; exactly 0 for an exact 1.
///
/// # Errors
/// `value` is no number, negative, or an exact zero.
pub fn log(m: &mut Mutator, value: Value) -> Result {
    if value.as_fixnum() == Some(1) {
        return Ok(Value::fixnum(0));
    }
    let x = logarithm(1, value)?;
    Ok(m.flonum(x)?)
}

/// The logarithm of `value` to the base `base`.
///
/// # Errors
/// As [`log`].
pub fn log_base(m: &mut Mutator, value: Value, base: Value) -> Result {
    let (x, b) = (logarithm(1, value)?, logarithm(2, base)?);
    // The bases people ask for have their own, correctly rounded, functions.
    let real = Number::argument("log", 1, value)?.to_real();
    let result = match base.as_fixnum() {
        Some(2) if real.is_finite() => real.log2(),
        Some(10) if real.is_finite() => real.log10(),
        _ => x / b,
    };
    Ok(m.flonum(result)?)
}

fn logarithm(position: usize, value: Value) -> Result<f64> {
    let number = Number::argument("log", position, value)?;
    if number.sign() < 0 {
        return Err(Raise::out_of_range("log", position, value, NOT_NEGATIVE));
    }
    if number.is_exact() && number.sign() == 0 {
        return Err(Raise::out_of_range("log", position, value, "above zero"));
    }
    let x = number.to_real();
    if x.is_finite() && x != 0.0 || !number.is_exact() {
        return Ok(x.ln());
    }
    let ratio = number.into_ratio().unwrap_or_default();
    Ok(big_logarithm(ratio.numer().magnitude()) - big_logarithm(ratio.denom().magnitude()))
}

/// The logarithm of an integer that no flonum holds.
fn big_logarithm(n: &BigUint) -> f64 {
    let shift = n.bits().saturating_sub(64);
    let top = (n >> shift).to_f64().unwrap_or(f64::INFINITY);
    top.ln() + shift as f64 * core::f64::consts::LN_2
}
