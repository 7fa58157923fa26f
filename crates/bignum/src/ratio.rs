//! Sums, products and quotients of exact ratios in lowest terms, in slices if the operands are
//! long.
//!
//! Short operands go to `num-rational`. Source: Knuth, "The Art of Computer Programming" 2, 4.5.1:
//! common factors of two operands in lowest terms are removed before the multiplication.

use crate::{Pause, integer};
use core::cmp::Ordering;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed};

/// Two operands with at most this many bits together are short.
const SHORT_BITS: u64 = 1 << 11;

fn are_short(parts: &[&BigInt]) -> bool {
    parts.iter().map(|part| part.bits()).sum::<u64>() <= SHORT_BITS
}

/// `numerator / denominator` in lowest terms. `denominator` is not zero.
///
/// # Errors
/// As `pause`.
pub fn reduced<E>(
    numerator: BigInt,
    denominator: BigInt,
    pause: Pause<'_, E>,
) -> Result<BigRational, E> {
    if are_short(&[&numerator, &denominator]) {
        return Ok(BigRational::new(numerator, denominator));
    }
    let common = common(&numerator, &denominator, pause)?;
    let numerator = without(&numerator, &common, pause)?;
    let denominator = without(&denominator, &common, pause)?;
    Ok(signed(numerator, denominator))
}

/// Compares `x` with `y`.
#[must_use]
pub fn order(x: &BigRational, y: &BigRational) -> Ordering {
    if are_short(&[x.numer(), x.denom(), y.numer(), y.denom()]) {
        return x.cmp(y);
    }
    (x.numer() * y.denom()).cmp(&(y.numer() * x.denom()))
}

/// `x + y`.
///
/// # Errors
/// As `pause`.
pub fn sum<E>(x: BigRational, y: BigRational, pause: Pause<'_, E>) -> Result<BigRational, E> {
    if are_short(&[x.numer(), x.denom(), y.numer(), y.denom()]) {
        return Ok(x + y);
    }
    let shared = common(x.denom(), y.denom(), pause)?;
    let x_factor = without(y.denom(), &shared, pause)?;
    let y_factor = without(x.denom(), &shared, pause)?;
    let sum = integer::product(x.numer(), &x_factor, pause)?
        + integer::product(y.numer(), &y_factor, pause)?;
    let common = common(&sum, &shared, pause)?;
    let rest = without(y.denom(), &common, pause)?;
    let denominator = integer::product(&y_factor, &rest, pause)?;
    Ok(BigRational::new_raw(without(&sum, &common, pause)?, denominator))
}

/// `x * y`.
///
/// # Errors
/// As `pause`.
pub fn product<E>(x: BigRational, y: BigRational, pause: Pause<'_, E>) -> Result<BigRational, E> {
    if are_short(&[x.numer(), x.denom(), y.numer(), y.denom()]) {
        return Ok(x * y);
    }
    let first = common(x.numer(), y.denom(), pause)?;
    let second = common(y.numer(), x.denom(), pause)?;
    let mut times = |a: &BigInt, a_common: &BigInt, b: &BigInt, b_common: &BigInt| {
        let (a, b) = (without(a, a_common, pause)?, without(b, b_common, pause)?);
        integer::product(&a, &b, pause)
    };
    let numerator = times(x.numer(), &first, y.numer(), &second)?;
    let denominator = times(x.denom(), &second, y.denom(), &first)?;
    Ok(BigRational::new_raw(numerator, denominator))
}

/// `x / y`, where `y` is not zero.
///
/// # Errors
/// As `pause`.
pub fn quotient<E>(x: BigRational, y: BigRational, pause: Pause<'_, E>) -> Result<BigRational, E> {
    let (numerator, denominator) = y.into_raw();
    product(x, signed(denominator, numerator), pause)
}

/// The ratio, with the sign moved to the numerator.
fn signed(numerator: BigInt, denominator: BigInt) -> BigRational {
    if denominator.is_negative() {
        return BigRational::new_raw(-numerator, -denominator);
    }
    BigRational::new_raw(numerator, denominator)
}

fn common<E>(a: &BigInt, b: &BigInt, pause: Pause<'_, E>) -> Result<BigInt, E> {
    Ok(integer::gcd(a.magnitude(), b.magnitude(), pause)?.into())
}

/// `n / divisor`. `divisor` is positive and divides `n`.
fn without<E>(n: &BigInt, divisor: &BigInt, pause: Pause<'_, E>) -> Result<BigInt, E> {
    if divisor.is_one() {
        return Ok(n.clone());
    }
    let (quotient, _) = integer::divide(n.magnitude(), divisor.magnitude(), pause)?;
    Ok(BigInt::from_biguint(n.sign(), quotient))
}
