//! Complex numbers that are not real, by their parts: arithmetic, polar form.
//!
//! A real number stands for one with an exact zero as its imaginary part. That zero is kept out of
//! sums and products: it would turn `-0.0` into `0.0`, and an infinity into a NaN.

use super::arithmetic::sub as sub_reals;
use super::arithmetic::{add as add_reals, div as div_reals, mul as mul_reals, negate};
use super::{Number, compare, inexact, sqrt};
use crate::heap::Mutator;
use crate::heap::object::Kind;
use crate::raise::{Raise, Result};
use crate::value::Value;
use core::cmp::Ordering;
use num_complex::Complex64;

const ZERO: Value = Value::fixnum(0);

/// Whether `value` is a complex number that is not real.
#[inline]
#[must_use]
pub fn is_complex(value: Value) -> bool {
    value.is_kind(Kind::Complex)
}

/// Whether one of two values is.
#[inline]
pub(super) fn either(a: Value, b: Value) -> bool {
    is_complex(a) || is_complex(b)
}

/// Real and imaginary part of a number.
#[must_use]
pub fn parts(value: Value) -> (Value, Value) {
    if is_complex(value) { (value.field_at(0), value.field_at(1)) } else { (value, ZERO) }
}

/// The number with these parts, two real numbers; inexact where one is, but for an imaginary part
/// that is an exact zero.
///
/// # Errors
/// One is no real number; no memory.
pub fn rectangular(m: &mut Mutator, real: Value, imaginary: Value) -> Result {
    if imaginary == ZERO {
        return Ok(real);
    }
    let (real, imaginary) = match (real.as_flonum(), imaginary.as_flonum()) {
        (Some(_), None) => (real, inexact(m, imaginary)?),
        (None, Some(_)) => (inexact(m, real)?, imaginary),
        _ => (real, imaginary),
    };
    Ok(m.object_of(Kind::Complex, &[real, imaginary])?)
}

/// The number at the distance `magnitude` from zero, in the direction `angle`: exact where one of
/// them is an exact zero.
///
/// # Errors
/// One is no real number; no memory.
pub fn polar(m: &mut Mutator, magnitude: Value, angle: Value) -> Result {
    let length = Number::argument("make-polar", 1, magnitude)?.to_real();
    let direction = Number::argument("make-polar", 2, angle)?.to_real();
    if angle == ZERO || magnitude == ZERO {
        return Ok(magnitude);
    }
    store(m, Complex64::new(length * direction.cos(), length * direction.sin()))
}

/// Stores an inexact number.
pub(super) fn store(m: &mut Mutator, z: Complex64) -> Result {
    let (real, imaginary) = (m.flonum(z.re)?, m.flonum(z.im)?);
    Ok(m.object_of(Kind::Complex, &[real, imaginary])?)
}

/// The inexact number nearest to `value`, or the complaint that argument `position` of `who` is none.
pub(super) fn argument(who: &'static str, position: usize, value: Value) -> Result<Complex64> {
    let (real, imaginary) = parts(value);
    let real = Number::argument(who, position, real)?.to_real();
    Ok(Complex64::new(real, Number::argument(who, position, imaginary)?.to_real()))
}

/// `a + b`, one of them not real.
pub(super) fn add(m: &mut Mutator, a: Value, b: Value) -> Result {
    by_parts(m, ("+", a, b), |m, x, y| match (x, y) {
        (ZERO, other) | (other, ZERO) => Ok(other),
        _ => add_reals(m, x, y),
    })
}

/// `a - b`, one of them not real.
pub(super) fn sub(m: &mut Mutator, a: Value, b: Value) -> Result {
    by_parts(m, ("-", a, b), |m, x, y| match (x, y) {
        (x, ZERO) => Ok(x),
        (ZERO, y) => negate(m, y),
        _ => sub_reals(m, x, y),
    })
}

fn by_parts(
    m: &mut Mutator,
    (who, a, b): (&'static str, Value, Value),
    operation: Operation,
) -> Result {
    let ((real_a, imaginary_a), (real_b, imaginary_b)) = both(who, a, b)?;
    let real = operation(m, real_a, real_b)?;
    let imaginary = m.keeping(&[real], |m| operation(m, imaginary_a, imaginary_b))?;
    rectangular(m, real, imaginary)
}

type Parts = (Value, Value);
type Operation = fn(&mut Mutator, Value, Value) -> Result;

/// The parts of two numbers.
fn both(who: &'static str, a: Value, b: Value) -> Result<(Parts, Parts)> {
    for (position, value) in [(1, a), (2, b)] {
        if !super::is_number(value) {
            return Err(Raise::wrong_type(who, position, "number", value));
        }
    }
    Ok((parts(a), parts(b)))
}

/// The results for two pairs of operands, which the caller keeps.
fn both_by(m: &mut Mutator, operation: Operation, first: Parts, second: Parts) -> Result<Parts> {
    let x = operation(m, first.0, first.1)?;
    let y = m.keeping(&[x], |m| operation(m, second.0, second.1))?;
    Ok((x, y))
}

/// `a * b`, one of them not real.
pub(super) fn mul(m: &mut Mutator, a: Value, b: Value) -> Result {
    let ((real_a, imaginary_a), (real_b, imaginary_b)) = both("*", a, b)?;
    let (real, imaginary) = match (is_complex(a), is_complex(b)) {
        (true, true) => {
            let (x, y) = both_by(m, mul_reals, (real_a, real_b), (imaginary_a, imaginary_b))?;
            let real = sub_reals(m, x, y)?;
            let imaginary = m.keeping(&[real], |m| {
                let (x, y) = both_by(m, mul_reals, (real_a, imaginary_b), (imaginary_a, real_b))?;
                add_reals(m, x, y)
            })?;
            (real, imaginary)
        }
        (true, false) => both_by(m, mul_reals, (real_a, b), (imaginary_a, b))?,
        _ => both_by(m, mul_reals, (a, real_b), (a, imaginary_b))?,
    };
    rectangular(m, real, imaginary)
}

/// `a / b`, one of them not real, `b` no exact zero.
pub(super) fn div(m: &mut Mutator, a: Value, b: Value) -> Result {
    let ((real_a, imaginary_a), (real_b, imaginary_b)) = both("/", a, b)?;
    if !is_complex(b) {
        let (real, imaginary) = both_by(m, div_reals, (real_a, b), (imaginary_a, b))?;
        return rectangular(m, real, imaginary);
    }
    if real_a.as_flonum().is_some() || real_b.as_flonum().is_some() {
        let quotient = quotient(argument("/", 1, a)?, argument("/", 2, b)?);
        return store(m, quotient);
    }
    let conjugate = {
        let imaginary = negate(m, imaginary_b)?;
        rectangular(m, real_b, imaginary)?
    };
    let product = m.keeping(&[conjugate], |m| mul(m, a, conjugate))?;
    let norm = m.keeping(&[product], |m| norm(m, b))?;
    let (x, y) = parts(product);
    let by_norm = |m: &mut Mutator| both_by(m, div_reals, (x, norm), (y, norm));
    let (real, imaginary) = m.keeping(&[x, y, norm], by_norm)?;
    rectangular(m, real, imaginary)
}

/// Smith's division: the parts are scaled, so that squares of them neither overflow nor vanish.
fn quotient(a: Complex64, b: Complex64) -> Complex64 {
    if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let divisor = b.re + b.im * ratio;
        Complex64::new((a.re + a.im * ratio) / divisor, (a.im - a.re * ratio) / divisor)
    } else {
        let ratio = b.re / b.im;
        let divisor = b.re * ratio + b.im;
        Complex64::new((a.re * ratio + a.im) / divisor, (a.im * ratio - a.re) / divisor)
    }
}

/// The square of the distance from zero of an exact number.
pub(super) fn norm(m: &mut Mutator, value: Value) -> Result {
    let (real, imaginary) = parts(value);
    let (x, y) = both_by(m, mul_reals, (real, real), (imaginary, imaginary))?;
    add_reals(m, x, y)
}

/// The square root with a real part that is not negative, or on the side of the cut that a zero's sign says.
pub(super) fn root(z: Complex64) -> Complex64 {
    let size = z.re.abs().max(z.im.abs());
    if z.im.is_infinite() {
        return Complex64::new(f64::INFINITY, z.im);
    }
    if size == 0.0 {
        return Complex64::new(0.0, z.im);
    }
    if z.re.is_infinite() {
        let beside = 0.0 * z.im;
        let (real, imaginary) = if z.re > 0.0 { (size, beside) } else { (beside.abs(), size) };
        return Complex64::new(real, imaginary.copysign(z.im));
    }
    // Powers of four, so that nothing leaves the range or becomes subnormal on the way.
    let (scale, back) = match size {
        _ if size > 1e307 => (0.25, 2.0),
        _ if size < 1e-290 => (2f64.powi(128), 2f64.powi(-64)),
        _ => (1.0, 1.0),
    };
    let (real, imaginary) = (z.re * scale, z.im * scale);
    let long = (f64::midpoint(real.abs(), real.hypot(imaginary))).sqrt();
    let short = imaginary.abs() / (2.0 * long);
    let (real, imaginary_size) = if z.re >= 0.0 { (long, short) } else { (short, long) };
    Complex64::new(real * back, imaginary_size.copysign(z.im) * back)
}

/// The distance from zero: exact where `value` and the distance are.
///
/// # Errors
/// `value` is no number; no memory.
pub fn magnitude(m: &mut Mutator, value: Value) -> Result {
    if !is_complex(value) {
        return match Number::argument("magnitude", 1, value)? {
            Number::Real(x) => Ok(m.flonum(x.abs())?),
            number if number.sign() < 0 => negate(m, value),
            _ => Ok(value),
        };
    }
    if value.field_at(0).as_flonum().is_some() {
        let z = argument("magnitude", 1, value)?;
        return Ok(m.flonum(z.re.hypot(z.im))?);
    }
    let norm = norm(m, value)?;
    sqrt(m, norm)
}

/// The direction from zero, in radians above -π and up to π: 0 for real numbers that are not
/// negative.
///
/// # Errors
/// `value` is no number; no memory.
pub fn angle(m: &mut Mutator, value: Value) -> Result {
    if !is_complex(value) {
        return match Number::argument("angle", 1, value)? {
            number if number.sign() < 0 => Ok(m.flonum(core::f64::consts::PI)?),
            Number::Real(x) if x.is_nan() => Ok(value),
            // A flonum lies above the real axis: below zero, as -0.0 is, its angle is pi.
            Number::Real(x) => Ok(m.flonum(0.0_f64.atan2(x))?),
            _ => Ok(ZERO),
        };
    }
    let mut z = argument("angle", 1, value)?;
    let is_lost = |x: f64| x == 0.0 || x.is_infinite();
    if is_exact(value) && (is_lost(z.re) || is_lost(z.im)) {
        // Parts outside a flonum's range: their ratio may be inside.
        let (real, imaginary) = parts(value);
        let scale = larger(m, real, imaginary)?;
        let by_scale = |m: &mut Mutator| both_by(m, div_reals, (real, scale), (imaginary, scale));
        let (real, imaginary) = m.keeping(&[scale], by_scale)?;
        let scaled = rectangular(m, real, imaginary)?;
        z = argument("angle", 1, scaled)?;
    }
    Ok(m.flonum(z.im.atan2(z.re))?)
}

/// The magnitude of the larger of two exact real numbers.
pub(super) fn larger(m: &mut Mutator, x: Value, y: Value) -> Result {
    let (x, y) = (magnitude(m, x)?, magnitude(m, y)?);
    Ok(if compare("angle", 1, x, y)? == Some(Ordering::Less) { y } else { x })
}

/// Whether a number is exact.
pub(super) fn is_exact(value: Value) -> bool {
    parts(value).0.as_flonum().is_none()
}

#[cfg(test)]
mod tests;
