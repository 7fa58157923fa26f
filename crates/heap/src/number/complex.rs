//! Complex numbers that are not real, as real and imaginary parts: arithmetic and polar form.
//!
//! A real number counts as one with an exact zero as its imaginary part. Sums and products leave
//! that zero out: it would turn `-0.0` into `0.0`, and an infinity into a NaN.

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

/// Whether one of two values is complex and not real.
#[inline]
pub(super) fn either(a: Value, b: Value) -> bool {
    is_complex(a) || is_complex(b)
}

/// Real and imaginary part of a number.
#[must_use]
pub fn parts(value: Value) -> (Value, Value) {
    if is_complex(value) { (value.field_at(0), value.field_at(1)) } else { (value, ZERO) }
}

/// The number with these parts. The caller has checked that both are real numbers. If one is
/// inexact, both become inexact, except that an exact zero as imaginary part makes the result real.
///
/// # Errors
/// Out of memory.
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

/// The number with the distance `magnitude` from zero, in the direction `angle`. If one of them is
/// an exact zero, the result is `magnitude`.
///
/// # Errors
/// One is not a real number; out of memory.
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

/// The inexact number nearest to `value`. `who` and `position` name the procedure and the argument
/// in the error.
pub(super) fn argument(who: &'static str, position: usize, value: Value) -> Result<Complex64> {
    let (real, imaginary) = parts(value);
    let real = Number::argument(who, position, real)?.to_real();
    Ok(Complex64::new(real, Number::argument(who, position, imaginary)?.to_real()))
}

/// `a + b`, where at least one of them is not real.
pub(super) fn add(m: &mut Mutator, a: Value, b: Value) -> Result {
    by_parts(m, ("+", a, b), |m, x, y| match (x, y) {
        (ZERO, other) | (other, ZERO) => Ok(other),
        _ => add_reals(m, x, y),
    })
}

/// `a - b`, where at least one of them is not real.
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

/// The results for two pairs of operands. The caller keeps the operands alive.
fn both_by(m: &mut Mutator, operation: Operation, first: Parts, second: Parts) -> Result<Parts> {
    let x = operation(m, first.0, first.1)?;
    let y = m.keeping(&[x], |m| operation(m, second.0, second.1))?;
    Ok((x, y))
}

/// `a * b`, where at least one of them is not real.
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

/// `a / b`, where at least one of them is not real, and `b` is not an exact zero.
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

/// Smith's division: the parts are scaled, so that their squares neither overflow nor underflow.
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

/// The squared distance of an exact number from zero.
pub(super) fn norm(m: &mut Mutator, value: Value) -> Result {
    let (real, imaginary) = parts(value);
    let (x, y) = both_by(m, mul_reals, (real, real), (imaginary, imaginary))?;
    add_reals(m, x, y)
}

/// The square root with a non-negative real part. On the cut, the sign of a zero decides the side.
pub(super) fn root(z: Complex64) -> Complex64 {
    let size = z.re.abs().max(z.im.abs());
    if z.im.is_infinite() {
        return Complex64::new(f64::INFINITY, z.im);
    }
    if size == 0.0 {
        return Complex64::new(0.0, z.im);
    }
    if z.re.is_infinite() {
        let zero_or_nan = 0.0 * z.im;
        let (real, imaginary) =
            if z.re > 0.0 { (size, zero_or_nan) } else { (zero_or_nan.abs(), size) };
        return Complex64::new(real, imaginary.copysign(z.im));
    }
    // Scaling by powers of four keeps all intermediate results in range and normal.
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

/// The distance from zero. It is exact if `value` is and the distance can be.
///
/// # Errors
/// `value` is not a number; out of memory.
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

/// The direction from zero, in radians from -π to π; 0 for non-negative real numbers.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn angle(m: &mut Mutator, value: Value) -> Result {
    if !is_complex(value) {
        return match Number::argument("angle", 1, value)? {
            number if number.sign() < 0 => Ok(m.flonum(core::f64::consts::PI)?),
            Number::Real(x) if x.is_nan() => Ok(value),
            // A flonum counts as above the real axis, so a negative one, including -0.0, has the
            // angle pi.
            Number::Real(x) => Ok(m.flonum(0.0_f64.atan2(x))?),
            _ => Ok(ZERO),
        };
    }
    let mut z = argument("angle", 1, value)?;
    let is_lost = |x: f64| x == 0.0 || x.is_infinite();
    if is_exact(value) && (is_lost(z.re) || is_lost(z.im)) {
        // The parts may exceed a flonum's range while their ratio does not.
        let (real, imaginary) = parts(value);
        let scale = larger(m, real, imaginary)?;
        let by_scale = |m: &mut Mutator| both_by(m, div_reals, (real, scale), (imaginary, scale));
        let (real, imaginary) = m.keeping(&[scale], by_scale)?;
        let scaled = rectangular(m, real, imaginary)?;
        z = argument("angle", 1, scaled)?;
    }
    Ok(m.flonum(z.im.atan2(z.re))?)
}

/// The larger of the magnitudes of two exact real numbers.
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
