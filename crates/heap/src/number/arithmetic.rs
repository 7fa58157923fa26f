//! Sum, difference, product and quotient of two numbers.
//!
//! Fixnums come first: their magnitudes are at most 2^60, so a 64-bit sum cannot overflow. Then
//! come flonums with flonums or fixnums. Other numbers are unpacked from the tagged words.

use super::{INTEGER_BITS_MAX, Number, check_bits, complex, integer, is_complex, is_number};
use super::{Pause, parts, ratio, rectangular, short, store_short};
use crate::heap::{Kind, Mutator};
use crate::raise::{Raise, Result};
use crate::value::Value;
use core::ops::{Add, Mul, Sub};
use kyocho_bignum::integer::product;
use kyocho_bignum::ratio;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;

/// Two numbers converted to one representation.
pub(super) enum Alike {
    Big(BigInt, BigInt),
    Ratio(BigRational, BigRational),
    Real(f64, f64),
}

/// `a + b`.
///
/// # Errors
/// An operand is not a number; out of memory; the result is too long.
#[inline]
pub fn add(m: &mut Mutator, a: Value, b: Value) -> Result {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        return integer(m, x + y);
    }
    if let Some((x, y)) = reals(a, b) {
        return Ok(m.flonum(x + y)?);
    }
    if let (Some(x), Some(y)) = (short(a), short(b)) {
        return store_short(m, x + y);
    }
    if complex::either(a, b) {
        return m.keeping(&[a, b], |m| complex::add(m, a, b));
    }
    combine(m, "+", (a, b), |x, y, _| Ok(x + y), ratio::sum, f64::add)
}

/// `a - b`.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn sub(m: &mut Mutator, a: Value, b: Value) -> Result {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        return integer(m, x - y);
    }
    if let Some((x, y)) = reals(a, b) {
        return Ok(m.flonum(x - y)?);
    }
    if let (Some(x), Some(y)) = (short(a), short(b)) {
        return store_short(m, x - y);
    }
    if complex::either(a, b) {
        return m.keeping(&[a, b], |m| complex::sub(m, a, b));
    }
    combine(m, "-", (a, b), |x, y, _| Ok(x - y), |x, y, p| ratio::sum(x, -y, p), f64::sub)
}

/// `a * b`.
///
/// # Errors
/// As [`add`].
#[inline]
pub fn mul(m: &mut Mutator, a: Value, b: Value) -> Result {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        return match x.checked_mul(y) {
            Some(product) => integer(m, product),
            None => store_short(m, i128::from(x) * i128::from(y)),
        };
    }
    if let Some((x, y)) = reals(a, b) {
        return Ok(m.flonum(x * y)?);
    }
    if let (Some(x), Some(y)) = (short(a), short(b))
        && let Some(product) = x.checked_mul(y)
    {
        return store_short(m, product);
    }
    if complex::either(a, b) {
        return m.keeping(&[a, b], |m| complex::mul(m, a, b));
    }
    check_bits(bits(a) + bits(b))?;
    combine(m, "*", (a, b), |x, y, p| product(&x, &y, p), ratio::product, f64::mul)
}

/// `a / b`. Exact operands have an exact result.
///
/// # Errors
/// As [`add`]; `b` is an exact zero.
pub fn div(m: &mut Mutator, a: Value, b: Value) -> Result {
    if b.as_fixnum() == Some(0) {
        let raise = Raise::divide_by_zero("/");
        return Err(if is_number(a) { raise } else { Raise::wrong_type("/", 1, "number", a) });
    }
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        if x % y == 0 {
            return integer(m, x / y);
        }
        return ratio(BigInt::from(x), BigInt::from(y)).store(m);
    }
    if let Some((x, y)) = reals(a, b) {
        return Ok(m.flonum(x / y)?);
    }
    if complex::either(a, b) {
        return m.keeping(&[a, b], |m| complex::div(m, a, b));
    }
    let pause: Pause<'_> = &mut || m.pause(&[]);
    let result = match alike("/", a, b)? {
        Alike::Big(x, y) => Number::Ratio(ratio::reduced(x, y, pause)?),
        Alike::Ratio(x, y) => Number::Ratio(ratio::quotient(x, y, pause)?),
        Alike::Real(x, y) => Number::Real(x / y),
    };
    result.store(m)
}

/// `-a`.
///
/// # Errors
/// `a` is not a number; out of memory.
pub fn negate(m: &mut Mutator, a: Value) -> Result {
    if is_complex(a) {
        let (real, imaginary) = parts(a);
        let (real, imaginary) = (negate(m, real)?, negate(m, imaginary)?);
        return rectangular(m, real, imaginary);
    }
    let result = match Number::argument("-", 1, a)? {
        Number::Fixnum(n) => return integer(m, -n),
        Number::Big(n) => Number::Big(-n),
        Number::Ratio(r) => Number::Ratio(-r),
        Number::Real(x) => Number::Real(-x),
    };
    result.store(m)
}

/// Two flonums, or a flonum and a fixnum, as floats; `None` for other operands.
#[inline(always)]
#[must_use]
pub fn reals(a: Value, b: Value) -> Option<(f64, f64)> {
    match (a.as_flonum(), b.as_flonum()) {
        (Some(x), Some(y)) => Some((x, y)),
        (Some(x), None) => b.as_fixnum().map(|y| (x, y as f64)),
        (None, Some(y)) => a.as_fixnum().map(|x| (x as f64, y)),
        (None, None) => None,
    }
}

/// An upper bound of the length of an exact number, in bits.
fn bits(value: Value) -> u64 {
    let bits = match value.kind() {
        Some(Kind::Bignum) => value.size_words() as u64 * 64,
        Some(Kind::Ratio) => [value.field(0), value.field(1)].into_iter().flatten().map(bits).sum(),
        _ => 64,
    };
    bits.min(INTEGER_BITS_MAX)
}

pub(super) fn alike(who: &'static str, a: Value, b: Value) -> Result<Alike> {
    let x = Number::argument(who, 1, a)?;
    let y = Number::argument(who, 2, b)?;
    Ok(match (x, y) {
        (Number::Real(x), y) => Alike::Real(x, y.to_real()),
        (x, Number::Real(y)) => Alike::Real(x.to_real(), y),
        (x @ Number::Ratio(_), y) | (x, y @ Number::Ratio(_)) => {
            let x =
                x.into_ratio().ok_or_else(|| Raise::wrong_type(who, 1, "rational number", a))?;
            let y =
                y.into_ratio().ok_or_else(|| Raise::wrong_type(who, 2, "rational number", b))?;
            Alike::Ratio(x, y)
        }
        (x, y) => {
            let x = x.into_big().unwrap_or_else(BigInt::zero);
            let y = y.into_big().unwrap_or_else(BigInt::zero);
            Alike::Big(x, y)
        }
    })
}

fn combine(
    m: &mut Mutator,
    who: &'static str,
    (a, b): (Value, Value),
    big: fn(BigInt, BigInt, Pause<'_>) -> Result<BigInt>,
    ratio: fn(BigRational, BigRational, Pause<'_>) -> Result<BigRational>,
    real: fn(f64, f64) -> f64,
) -> Result {
    let pause: Pause<'_> = &mut || m.pause(&[]);
    let result = match alike(who, a, b)? {
        Alike::Big(x, y) => Number::Big(big(x, y, pause)?),
        Alike::Ratio(x, y) => Number::Ratio(ratio(x, y, pause)?),
        Alike::Real(x, y) => Number::Real(real(x, y)),
    };
    result.store(m)
}
