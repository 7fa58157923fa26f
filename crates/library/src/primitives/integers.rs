//! Integer division in its variants, parity, divisors, roots.

use super::Primitive;
use super::call::Call;
use kyocho_heap::heap::Mutator;
use kyocho_heap::number::{self, Division, Number};
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("quotient", 2, |m, a| divide(m, "quotient", Division::TruncateQuotient, a)),
    Primitive::exactly("remainder", 2, |m, a| {
        divide(m, "remainder", Division::TruncateRemainder, a)
    }),
    Primitive::exactly("modulo", 2, |m, a| divide(m, "modulo", Division::FloorRemainder, a)),
    Primitive::exactly("truncate-quotient", 2, |m, a| {
        divide(m, "truncate-quotient", Division::TruncateQuotient, a)
    }),
    Primitive::exactly("truncate-remainder", 2, |m, a| {
        divide(m, "truncate-remainder", Division::TruncateRemainder, a)
    }),
    Primitive::exactly("floor-quotient", 2, |m, a| {
        divide(m, "floor-quotient", Division::FloorQuotient, a)
    }),
    Primitive::exactly("floor-remainder", 2, |m, a| {
        divide(m, "floor-remainder", Division::FloorRemainder, a)
    }),
    Primitive::exactly("even?", 1, |_, a| Ok(Value::boolean(!is_odd("even?", a)?))),
    Primitive::exactly("odd?", 1, |_, a| Ok(Value::boolean(is_odd("odd?", a)?))),
    Primitive::at_least("gcd", 0, |m, a| fold(m, a, Value::fixnum(0), number::gcd)),
    Primitive::at_least("lcm", 0, |m, a| fold(m, a, Value::fixnum(1), number::lcm)),
    Primitive::exactly("%exact-integer-sqrt", 1, exact_integer_sqrt),
];

fn divide(m: &mut Mutator, who: &'static str, division: Division, arguments: &[Value]) -> Result {
    division.apply(m, who, arguments[0], arguments[1])
}

fn is_odd(who: &'static str, arguments: &[Value]) -> Result<bool> {
    let call = Call::new(who, arguments);
    if let Some(n) = arguments[0].as_fixnum() {
        return Ok(n & 1 == 1);
    }
    match call.number(0)? {
        Number::Big(n) => Ok(n.bit(0)),
        Number::Real(x) if x.is_finite() && x.fract() == 0.0 => Ok(x % 2.0 != 0.0),
        _ => Err(call.wrong(0, "integer")),
    }
}

fn fold(
    m: &mut Mutator,
    arguments: &[Value],
    unit: Value,
    operation: fn(&mut Mutator, usize, Value, Value) -> Result,
) -> Result {
    // Starting with the unit also checks a single argument and takes its magnitude.
    let mut result = unit;
    for (i, &argument) in arguments.iter().enumerate() {
        result = operation(m, i, result, argument)?;
    }
    Ok(result)
}

/// Root and remainder as a pair. The prelude returns them as two values.
fn exact_integer_sqrt(m: &mut Mutator, arguments: &[Value]) -> Result {
    let (root, rest) = number::exact_integer_sqrt(m, arguments[0])?;
    let root = root.store(m)?;
    let rest = rest.store(m)?;
    Ok(m.cons(root, rest)?)
}
