//! Powers, roots and the transcendental functions.

use super::Primitive;
use super::call::Call;
use crate::heap::Mutator;
use crate::number::{self, Number};
use crate::raise::Result;
use crate::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("expt", 2, |m, a| number::expt(m, a[0], a[1])),
    Primitive::exactly("sqrt", 1, |m, a| number::sqrt(m, a[0])),
    Primitive::exactly("exp", 1, |m, a| number::exp(m, a[0])),
    Primitive::between("log", 1, 2, |m, a| match a {
        [value, base] => number::log_base(m, *value, *base),
        _ => number::log(m, a[0]),
    }),
    Primitive::exactly("sin", 1, |m, a| from_zero(m, "sin", a, f64::sin)),
    Primitive::exactly("cos", 1, cosine),
    Primitive::exactly("tan", 1, |m, a| from_zero(m, "tan", a, f64::tan)),
    Primitive::exactly("asin", 1, |m, a| inverse(m, "asin", a, f64::asin)),
    Primitive::exactly("acos", 1, |m, a| inverse(m, "acos", a, f64::acos)),
    Primitive::between("atan", 1, 2, arc_tangent),
];

/// A function with f(0) = 0: exactly so for an exact zero.
fn from_zero(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    function: fn(f64) -> f64,
) -> Result {
    match Call::new(who, arguments).number(0)? {
        Number::Fixnum(0) => Ok(Value::fixnum(0)),
        number => Ok(m.flonum(function(number.to_real()))?),
    }
}

fn cosine(m: &mut Mutator, arguments: &[Value]) -> Result {
    match Call::new("cos", arguments).number(0)? {
        Number::Fixnum(0) => Ok(Value::fixnum(1)),
        number => Ok(m.flonum(number.to_real().cos())?),
    }
}

fn inverse(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    function: fn(f64) -> f64,
) -> Result {
    let call = Call::new(who, arguments);
    match (call.number(0)?, who) {
        (Number::Fixnum(0), "asin") | (Number::Fixnum(1), "acos") => Ok(Value::fixnum(0)),
        (number, _) => {
            let x = number.to_real();
            if x.abs() > 1.0 {
                return Err(call.outside(0, "-1 <= x <= 1: there are no complex numbers here"));
            }
            Ok(m.flonum(function(x))?)
        }
    }
}

fn arc_tangent(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("atan", arguments);
    let y = call.number(0)?;
    if call.optional(1).is_none() {
        return from_zero(m, "atan", arguments, f64::atan);
    }
    let x = call.number(1)?;
    if matches!(y, Number::Fixnum(0)) && x.is_exact() {
        return match x.sign() {
            0 => Err(call.outside(1, "not zero where the first argument is zero")),
            1 => Ok(Value::fixnum(0)),
            _ => Ok(m.flonum(core::f64::consts::PI)?),
        };
    }
    Ok(m.flonum(y.to_real().atan2(x.to_real()))?)
}
