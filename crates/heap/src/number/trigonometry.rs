//! Sine, cosine, tangent and their inverses, also for complex numbers.
//!
//! The inverses follow Kahan ("Branch cuts for complex elementary functions", 1987). They avoid
//! cancellation near the branch points, and the sign of a zero decides on which side of a cut a
//! number is. For real numbers on a cut, the formulas of R7RS (6.2.6) decide.

use super::complex::{self, is_complex};
use super::{Number, parts};
use crate::heap::Mutator;
use crate::raise::{Raise, Result};
use crate::value::Value;
use core::f64::consts::PI;
use num_complex::Complex64;

/// If the imaginary part is at least this in absolute value, the imaginary part of the tangent is
/// ±1 to the last bit. Above 355 the general formula would overflow.
const TANGENT_FLAT: f64 = 20.0;

/// The sine; exactly 0 for an exact zero.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn sin(m: &mut Mutator, value: Value) -> Result {
    apply(m, ("sin", value), Some((0, 0)), f64::sin, Complex64::sin)
}

/// The cosine; exactly 1 for an exact zero.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn cos(m: &mut Mutator, value: Value) -> Result {
    apply(m, ("cos", value), Some((0, 1)), f64::cos, Complex64::cos)
}

/// The tangent; exactly 0 for an exact zero.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn tan(m: &mut Mutator, value: Value) -> Result {
    apply(m, ("tan", value), Some((0, 0)), f64::tan, |z| {
        if z.im.abs() < TANGENT_FLAT {
            return z.tan();
        }
        // tan z = ±i (1 - 2 e^(±2iz) + ...); further terms are below the last bit.
        let rest = 4.0 * (-2.0 * z.im.abs()).exp();
        Complex64::new(rest * z.re.sin() * z.re.cos(), z.im.signum())
    })
}

/// Applies a function that has an exact value for one exact integer, to a real or other number.
fn apply(
    m: &mut Mutator,
    (who, value): (&'static str, Value),
    exactly: Option<(i64, i64)>,
    real: fn(f64) -> f64,
    complex: fn(Complex64) -> Complex64,
) -> Result {
    if is_complex(value) {
        let z = complex::argument(who, 1, value)?;
        return complex::store(m, complex(z));
    }
    match Number::argument(who, 1, value)? {
        Number::Fixnum(n) if exactly.is_some_and(|(at, _)| at == n) => {
            Ok(Value::fixnum(exactly.map_or(0, |(_, result)| result)))
        }
        number => Ok(m.flonum(real(number.to_real()))?),
    }
}

/// The arc sine; exactly 0 for an exact zero, complex for real numbers below -1 or above 1.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn asin(m: &mut Mutator, value: Value) -> Result {
    match beyond_one("asin", value)? {
        Some(z) => complex::store(m, arc_sine(z)),
        None => apply(m, ("asin", value), Some((0, 0)), f64::asin, arc_sine),
    }
}

/// The arc cosine; exactly 0 for an exact 1, complex for real numbers below -1 or above 1.
///
/// # Errors
/// `value` is not a number; out of memory.
pub fn acos(m: &mut Mutator, value: Value) -> Result {
    match beyond_one("acos", value)? {
        Some(z) => complex::store(m, arc_cosine(z)),
        None => apply(m, ("acos", value), Some((1, 0)), f64::acos, arc_cosine),
    }
}

/// A real number on the cut of arc sine and arc cosine. Above 1 it counts as below the cut, below
/// -1 as above it.
fn beyond_one(who: &'static str, value: Value) -> Result<Option<Complex64>> {
    if is_complex(value) {
        return Ok(None);
    }
    let x = Number::argument(who, 1, value)?.to_real();
    Ok((x.abs() > 1.0).then(|| Complex64::new(x, if x > 0.0 { -0.0 } else { 0.0 })))
}

fn roots_about_one(z: Complex64) -> (Complex64, Complex64) {
    let below = complex::root(Complex64::new(1.0 - z.re, -z.im));
    (below, complex::root(Complex64::new(1.0 + z.re, z.im)))
}

fn arc_sine(z: Complex64) -> Complex64 {
    let (below, above) = roots_about_one(z);
    let real = z.re.atan2(below.re * above.re - below.im * above.im);
    Complex64::new(real, (below.re * above.im - below.im * above.re).asinh())
}

fn arc_cosine(z: Complex64) -> Complex64 {
    let (below, above) = roots_about_one(z);
    let real = 2.0 * below.re.atan2(above.re);
    Complex64::new(real, (above.re * below.im - above.im * below.re).asinh())
}

/// The arc tangent; exactly 0 for an exact zero.
///
/// # Errors
/// `value` is not a number, or an exact `+i` or `-i`; out of memory.
pub fn atan(m: &mut Mutator, value: Value) -> Result {
    if !is_complex(value) {
        return apply(m, ("atan", value), Some((0, 0)), f64::atan, arc_tangent);
    }
    let (real, imaginary) = parts(value);
    let mut z = complex::argument("atan", 1, value)?;
    if real == Value::fixnum(0) {
        if matches!(imaginary.as_fixnum(), Some(1 | -1)) {
            return Err(Raise::out_of_range("atan", 1, value, "neither +i nor -i"));
        }
        // On the cut: above i the value counts as right of it, below -i as left of it.
        z.re = if z.im < 0.0 { -0.0 } else { 0.0 };
    }
    complex::store(m, arc_tangent(z))
}

fn arc_tangent(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    let real = 0.5 * (2.0 * x).atan2((1.0 - y) * (1.0 + y) - x * x);
    let from_pole = x * x + (y.abs() - 1.0) * (y.abs() - 1.0);
    let imaginary = (0.25 * (4.0 * y.abs() / from_pole).ln_1p()).copysign(y);
    Complex64::new(real, imaginary)
}

/// The angle of the point (`x`, `y`), two real numbers.
///
/// # Errors
/// One is not a real number; both are exact zeros; out of memory.
pub fn atan2(m: &mut Mutator, y: Value, x: Value) -> Result {
    let (ordinate, abscissa) = (Number::argument("atan", 1, y)?, Number::argument("atan", 2, x)?);
    if y == Value::fixnum(0) && abscissa.is_exact() {
        return match abscissa.sign() {
            0 => {
                Err(Raise::out_of_range("atan", 2, x, "not zero where the first argument is zero"))
            }
            1 => Ok(y),
            _ => Ok(m.flonum(PI)?),
        };
    }
    Ok(m.flonum(ordinate.to_real().atan2(abscissa.to_real()))?)
}
