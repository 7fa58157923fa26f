//! Powers, roots and logarithms. Results are exact if they can be.

use super::complex::{self, angle, is_complex, magnitude, parts, polar, rectangular};
use super::{INTEGER_BITS_MAX, Number, Pause, add, check_bits, div, mul, negate, sub};
use crate::heap::Mutator;
use crate::raise::{Raise, Result};
use crate::value::Value;
use core::f64::consts::PI;
use kyocho_bignum::integer as bignum;
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Powers of inexact complex numbers up to this exponent are computed as products.
const PRODUCT_EXPONENT_MAX: u64 = 1024;

/// `base` to the power `exponent`.
///
/// # Errors
/// One is not a number; the result is too long; or `base` is zero and `exponent` is not allowed.
/// For an exact zero the exponent may not be a negative integer, or half of one. If the exponent is
/// complex, its real part must be above zero.
pub fn expt(m: &mut Mutator, base: Value, exponent: Value) -> Result {
    if is_complex(base) || is_complex(exponent) {
        return complex_power(m, base, exponent);
    }
    let b = Number::argument("expt", 1, base)?;
    let e = Number::argument("expt", 2, exponent)?;
    let result = match (b, e) {
        (Number::Real(b), Number::Fixnum(e)) => Number::Real(real_power(b, e)),
        (b, Number::Fixnum(e)) => exact_power(b, e, &mut || m.pause(&[]))?,
        (b, Number::Big(e)) if b.is_exact() => exact_huge_power(&b, &e)?,
        (b, e) => {
            if b.is_exact()
                && let Number::Ratio(e) = &e
                && let Some(power) = exact_root_power(m, base, e)?
            {
                return Ok(power);
            }
            let (x, y) = (b.to_real(), e.to_real());
            if x < 0.0 && y.is_finite() && y.fract() != 0.0 {
                let (length, direction) = (m.flonum((-x).powf(y))?, m.flonum(PI * y)?);
                return polar(m, length, direction);
            }
            Number::Real(x.powf(y))
        }
    };
    result.store(m)
}

/// A power with a base or an exponent that is not real.
fn complex_power(m: &mut Mutator, base: Value, exponent: Value) -> Result {
    let z = complex::argument("expt", 1, base)?;
    complex::argument("expt", 2, exponent)?;
    let is_exact_base = complex::is_exact(base);
    match Number::of(exponent) {
        Some(Number::Fixnum(e)) if is_exact_base || e.unsigned_abs() <= PRODUCT_EXPONENT_MAX => {
            return integer_power(m, base, e);
        }
        Some(Number::Big(e)) if is_exact_base => return huge_power(m, base, &e),
        Some(Number::Ratio(e)) if is_exact_base => {
            if let Some(power) = exact_root_power(m, base, &e)? {
                return Ok(power);
            }
        }
        _ => {}
    }
    if z.is_zero() {
        return power_of_zero(base, exponent);
    }
    let logarithm = log(m, base)?;
    let product = mul(m, exponent, logarithm)?;
    exp(m, product)
}

fn power_of_zero(base: Value, exponent: Value) -> Result {
    let (real, _) = parts(exponent);
    match Number::argument("expt", 2, real)?.sign() {
        1 => Ok(base),
        _ => Err(Raise::out_of_range(
            "expt",
            2,
            exponent,
            "with a real part above zero if the base is zero",
        )),
    }
}

/// `base` to the power `exponent` by squaring.
fn integer_power(m: &mut Mutator, base: Value, exponent: i64) -> Result {
    if complex::is_exact(base) {
        check_growth(m, base, exponent.unsigned_abs())?;
    }
    let mut rest = exponent.unsigned_abs();
    let (mut power, mut square) = (Value::fixnum(1), base);
    while rest > 0 {
        if rest & 1 == 1 {
            power = m.keeping(&[square], |m| mul(m, power, square))?;
        }
        rest >>= 1;
        if rest > 0 {
            square = m.keeping(&[power], |m| mul(m, square, square))?;
        }
    }
    if exponent < 0 { div(m, Value::fixnum(1), power) } else { Ok(power) }
}

/// Rejects a power whose parts are certainly too long, before time is spent on it.
///
/// Let the norm of `base` be n/m in lowest terms, and d the least common denominator of its parts.
/// The norm of the power has the numerator n^exponent, which is made from the four numerators and
/// denominators of the power's parts. As a quotient of Gaussian integers in lowest terms, `base`
/// has a denominator whose norm is at least d: a cancelled factor divides d, but no integer divides
/// the factor. So the denominators of the power have the common factor d^(exponent/2). In both
/// cases at least one of the four has a quarter of that length.
fn check_growth(m: &mut Mutator, base: Value, exponent: u64) -> Result<()> {
    let norm = complex::norm(m, base)?;
    let length = |value| {
        let ratio = Number::of(value).and_then(Number::into_ratio).unwrap_or_default();
        [ratio.numer().bits(), ratio.denom().bits()]
    };
    let (real, imaginary) = parts(base);
    let lengths = [length(norm)[0], length(real)[1], length(imaginary)[1]];
    let grows = lengths.into_iter().max().unwrap_or(0).saturating_sub(1);
    check_bits(grows.saturating_mul(exponent) / 4)
}

/// A power of an exact number that is not real, with an exponent beyond the machine word. Only the
/// powers of `+i` and `-i` do not grow.
fn huge_power(m: &mut Mutator, base: Value, exponent: &BigInt) -> Result {
    let (real, imaginary) = parts(base);
    if real == Value::fixnum(0) && matches!(imaginary.as_fixnum(), Some(1 | -1)) {
        let rest = exponent.mod_floor(&BigInt::from(4));
        return integer_power(m, base, rest.to_i64().unwrap_or(0));
    }
    check_bits(INTEGER_BITS_MAX + 1).map(|()| Value::fixnum(0))
}

fn real_power(base: f64, exponent: i64) -> f64 {
    match i32::try_from(exponent) {
        Ok(e) if e.abs() <= 1024 => base.powi(e),
        _ => base.powf(exponent as f64),
    }
}

fn exact_power(base: Number, exponent: i64, pause: Pause<'_>) -> Result<Number> {
    let base = base.into_ratio().unwrap_or_default();
    if exponent < 0 && base.is_zero() {
        return Err(Raise::divide_by_zero("expt"));
    }
    let length = base.numer().bits().max(base.denom().bits()).saturating_sub(1);
    check_bits(length.saturating_mul(exponent.unsigned_abs()))?;
    let magnitude = exponent.unsigned_abs();
    let numerator = power(base.numer(), magnitude, pause)?;
    let denominator = power(base.denom(), magnitude, pause)?;
    // Powers of coprime integers are coprime, so only the sign must be moved to the numerator.
    Ok(Number::Ratio(if exponent >= 0 {
        BigRational::new_raw(numerator, denominator)
    } else if numerator.is_negative() {
        BigRational::new_raw(-denominator, -numerator)
    } else {
        BigRational::new_raw(denominator, numerator)
    }))
}

fn power(base: &BigInt, exponent: u64, pause: Pause<'_>) -> Result<BigInt> {
    if base.is_one() || base.is_zero() && exponent > 0 {
        return Ok(base.clone());
    }
    let magnitude = bignum::power(base.magnitude(), exponent, pause)?;
    let is_negative = base.is_negative() && exponent % 2 == 1;
    Ok(BigInt::from_biguint(if is_negative { Sign::Minus } else { Sign::Plus }, magnitude))
}

/// A power with an exponent beyond the machine word. It exists only for 0, 1 and -1.
fn exact_huge_power(base: &Number, exponent: &BigInt) -> Result<Number> {
    let odd = exponent.bit(0);
    match base {
        Number::Fixnum(0) if exponent.is_negative() => Err(Raise::divide_by_zero("expt")),
        Number::Fixnum(0 | 1) => Ok(base.clone()),
        Number::Fixnum(-1) => Ok(Number::Fixnum(if odd { -1 } else { 1 })),
        _ => check_bits(INTEGER_BITS_MAX + 1).map(|()| Number::Fixnum(0)),
    }
}

/// `base` to the power p/2, if `base` has an exact square root.
fn exact_root_power(m: &mut Mutator, base: Value, exponent: &BigRational) -> Result<Option<Value>> {
    let (Some(p), Some(2)) = (exponent.numer().to_i64(), exponent.denom().to_i64()) else {
        return Ok(None);
    };
    let root = sqrt(m, base)?;
    if !complex::is_exact(root) {
        return Ok(None);
    }
    m.keeping(&[root], |m| expt(m, root, Value::fixnum(p))).map(Some)
}

/// The square root. It is exact for an exact square, and imaginary for a negative number.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn sqrt(m: &mut Mutator, value: Value) -> Result {
    if is_complex(value) {
        return complex_root(m, value);
    }
    let number = Number::argument("sqrt", 1, value)?;
    if number.sign() < 0 {
        let positive = negate(m, value)?;
        let root = sqrt(m, positive)?;
        return rectangular(m, Value::fixnum(0), root);
    }
    if let Number::Real(x) = number {
        return Ok(m.flonum(x.sqrt())?);
    }
    let ratio = number.into_ratio().unwrap_or_default();
    match ratio_root(&ratio, &mut || m.pause(&[]))? {
        Some(root) => Number::Ratio(root).store(m),
        None => Ok(m.flonum(real_root(&ratio))?),
    }
}

/// The root with a non-negative real part. For an exact a + bi with distance d from zero, its parts
/// are the square roots of (d + a)/2 and (d - a)/2.
fn complex_root(m: &mut Mutator, value: Value) -> Result {
    if !complex::is_exact(value) {
        let z = complex::argument("sqrt", 1, value)?;
        return complex::store(m, complex::root(z));
    }
    let (real, imaginary) = parts(value);
    let distance = magnitude(m, value)?;
    if distance.as_flonum().is_some() {
        // The parts may exceed a flonum's range while those of the root do not.
        let scale = complex::larger(m, real, imaginary)?;
        let scaled = m.keeping(&[scale], |m| div(m, value, scale))?;
        let z = complex::argument("sqrt", 1, scaled)?;
        let root = complex::store(m, complex::root(z))?;
        let length = m.keeping(&[root], |m| sqrt(m, scale))?;
        return mul(m, root, length);
    }
    let half = |m: &mut Mutator, operation: fn(&mut Mutator, Value, Value) -> Result| {
        let sum = operation(m, distance, real)?;
        let half = div(m, sum, Value::fixnum(2))?;
        sqrt(m, half)
    };
    let root_real = m.keeping(&[distance], |m| half(m, add))?;
    let mut root_imaginary = m.keeping(&[root_real, distance], |m| half(m, sub))?;
    if Number::argument("sqrt", 1, imaginary)?.sign() < 0 {
        root_imaginary = negate(m, root_imaginary)?;
    }
    rectangular(m, root_real, root_imaginary)
}

/// The exact square root, if there is one.
fn ratio_root(ratio: &BigRational, pause: Pause<'_>) -> Result<Option<BigRational>> {
    let mut roots = [BigInt::ZERO, BigInt::ZERO];
    for (root, part) in roots.iter_mut().zip([ratio.numer(), ratio.denom()]) {
        let (part_root, rest) = bignum::root(part.magnitude(), pause)?;
        if !rest.is_zero() {
            return Ok(None);
        }
        *root = part_root.into();
    }
    let [numerator, denominator] = roots;
    Ok(Some(BigRational::new_raw(numerator, denominator)))
}

/// The square root of a ratio that may exceed a flonum's range although its root does not.
fn real_root(ratio: &BigRational) -> f64 {
    let direct = Number::Ratio(ratio.clone()).to_real();
    if direct.is_finite() && direct > 1e-290 {
        return direct.sqrt();
    }
    let length = ratio.numer().bits() as i64 - ratio.denom().bits() as i64;
    let half = length / 2;
    // Not reduced to lowest terms, which would take long and is not needed.
    let scale = 2 * half.unsigned_abs();
    let (numerator, denominator) = (ratio.numer().clone(), ratio.denom().clone());
    let scaled = match half {
        0.. => BigRational::new_raw(numerator, denominator << scale),
        _ => BigRational::new_raw(numerator << scale, denominator),
    };
    let root = Number::Ratio(scaled).to_real().sqrt();
    root * 2f64.powi((half / 2) as i32) * 2f64.powi((half - half / 2) as i32)
}

/// The largest `s` with s² <= n, and n - s².
///
/// # Errors
/// `value` is not an exact non-negative integer; or those of [`Mutator::pause`].
pub fn exact_integer_sqrt(m: &mut Mutator, value: Value) -> Result<(Number, Number)> {
    let complaint =
        || Raise::wrong_type("exact-integer-sqrt", 1, "exact non-negative integer", value);
    let n = Number::of(value).and_then(Number::into_big).ok_or_else(complaint)?;
    if n.is_negative() {
        return Err(complaint());
    }
    let (root, rest) = bignum::root(n.magnitude(), &mut || m.pause(&[]))?;
    Ok((Number::Big(root.into()), Number::Big(rest.into())))
}

/// e to the power `value`; exactly 1 for an exact zero.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn exp(m: &mut Mutator, value: Value) -> Result {
    if is_complex(value) {
        let z = complex::argument("exp", 1, value)?;
        return complex::store(m, z.exp());
    }
    match Number::argument("exp", 1, value)? {
        Number::Fixnum(0) => Ok(Value::fixnum(1)),
        number => Ok(m.flonum(number.to_real().exp())?),
    }
}

/// The natural logarithm; exactly 0 for an exact 1. Its imaginary part is the angle of `value`.
///
/// # Errors
/// `value` is not a number, or an exact zero; out of memory.
pub fn log(m: &mut Mutator, value: Value) -> Result {
    if value.as_fixnum() == Some(1) {
        return Ok(Value::fixnum(0));
    }
    if !is_on_cut(value) {
        let x = logarithm(1, value)?;
        return Ok(m.flonum(x)?);
    }
    let distance = magnitude(m, value)?;
    let real = logarithm(1, distance)?;
    let real = m.flonum(real)?;
    let imaginary = m.keeping(&[real], |m| angle(m, value))?;
    rectangular(m, real, imaginary)
}

/// Whether the logarithm of `value` is not real: it is complex or negative. -0.0 counts as
/// negative.
fn is_on_cut(value: Value) -> bool {
    let is_below = |number: Number| match number {
        Number::Real(x) => x.is_sign_negative() && !x.is_nan(),
        number => number.sign() < 0,
    };
    is_complex(value) || Number::of(value).is_some_and(is_below)
}

/// The logarithm of `value` to the base `base`.
///
/// # Errors
/// As [`log`]; the logarithm of `base` is an exact zero.
pub fn log_base(m: &mut Mutator, value: Value, base: Value) -> Result {
    if is_on_cut(value) || is_on_cut(base) {
        let x = log(m, value)?;
        let b = m.keeping(&[x], |m| log(m, base))?;
        return div(m, x, b);
    }
    let (x, b) = (logarithm(1, value)?, logarithm(2, base)?);
    // The common bases have functions of their own, which are more precise than the quotient.
    let real = Number::argument("log", 1, value)?.to_real();
    let result = match base.as_fixnum() {
        Some(2) if real.is_finite() => real.log2(),
        Some(10) if real.is_finite() => real.log10(),
        _ => x / b,
    };
    Ok(m.flonum(result)?)
}

/// The logarithm of a non-negative number.
fn logarithm(position: usize, value: Value) -> Result<f64> {
    let number = Number::argument("log", position, value)?;
    if number.is_exact() && number.sign() == 0 {
        return Err(Raise::out_of_range("log", position, value, "not zero"));
    }
    let x = number.to_real();
    if x.is_finite() && x != 0.0 || !number.is_exact() {
        return Ok(x.ln());
    }
    let ratio = number.into_ratio().unwrap_or_default();
    Ok(big_logarithm(ratio.numer().magnitude()) - big_logarithm(ratio.denom().magnitude()))
}

/// The logarithm of a positive integer, which may exceed a flonum's range.
fn big_logarithm(n: &BigUint) -> f64 {
    let shift = n.bits().saturating_sub(64);
    let top = (n >> shift).to_f64().unwrap_or(f64::INFINITY);
    top.ln() + shift as f64 * core::f64::consts::LN_2
}
