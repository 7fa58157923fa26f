//! Predicates of numbers, and numbers as text.

use super::Primitive;
use super::call::Call;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::number::{self, Number, Rounding};
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use kyocho_syntax as syntax;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("number?", 1, is_number),
    Primitive::exactly("complex?", 1, is_number),
    Primitive::exactly("real?", 1, |_, a| Ok(Value::boolean(number::is_real(a[0])))),
    Primitive::exactly("rational?", 1, is_rational),
    Primitive::exactly("integer?", 1, is_integer),
    Primitive::exactly("exact?", 1, |_, a| exactness("exact?", a, true)),
    Primitive::exactly("inexact?", 1, |_, a| exactness("inexact?", a, false)),
    Primitive::exactly("exact-integer?", 1, |_, a| Ok(Value::boolean(is_exact_integer(a[0])))),
    Primitive::exactly("exact-rational?", 1, |_, a| {
        Ok(Value::boolean(is_exact_integer(a[0]) || a[0].is_kind(Kind::Ratio)))
    }),
    Primitive::exactly("exact-nonnegative-integer?", 1, |_, a| {
        Ok(Value::boolean(
            is_exact_integer(a[0]) && Number::of(a[0]).is_some_and(|n| n.sign() >= 0),
        ))
    }),
    Primitive::exactly("nan?", 1, |_, a| has_part("nan?", a, f64::is_nan)),
    Primitive::exactly("finite?", 1, |_, a| {
        has_part("finite?", a, |x| !x.is_finite()).map(|odd| Value::boolean(!odd.is_true()))
    }),
    Primitive::exactly("infinite?", 1, |_, a| has_part("infinite?", a, f64::is_infinite)),
    Primitive::exactly("zero?", 1, is_zero),
    Primitive::exactly("positive?", 1, |_, a| sign_test("positive?", a, |x| x > 0.0)),
    Primitive::exactly("negative?", 1, |_, a| sign_test("negative?", a, |x| x < 0.0)),
    Primitive::exactly("exact", 1, |m, a| number::exact(m, a[0])),
    Primitive::exactly("inexact", 1, |m, a| number::inexact(m, a[0])),
    Primitive::exactly("inexact->exact", 1, |m, a| number::exact(m, a[0])),
    Primitive::exactly("exact->inexact", 1, |m, a| number::inexact(m, a[0])),
    Primitive::exactly("floor", 1, |m, a| number::rounded(m, Rounding::Floor, a[0])),
    Primitive::exactly("ceiling", 1, |m, a| number::rounded(m, Rounding::Ceiling, a[0])),
    Primitive::exactly("truncate", 1, |m, a| number::rounded(m, Rounding::Truncate, a[0])),
    Primitive::exactly("round", 1, |m, a| number::rounded(m, Rounding::Round, a[0])),
    Primitive::exactly("numerator", 1, |m, a| number::numerator(m, a[0])),
    Primitive::exactly("denominator", 1, |m, a| number::denominator(m, a[0])),
    Primitive::between("number->string", 1, 2, number_to_string),
    Primitive::between("string->number", 1, 2, string_to_number),
];

pub(super) fn is_exact_integer(value: Value) -> bool {
    value.is_fixnum() || value.is_kind(Kind::Bignum)
}

fn is_number(_: &mut Mutator, arguments: &[Value]) -> Result {
    Ok(Value::boolean(number::is_number(arguments[0])))
}

fn is_rational(_: &mut Mutator, arguments: &[Value]) -> Result {
    let value = arguments[0];
    Ok(Value::boolean(match value.as_flonum() {
        Some(x) => x.is_finite(),
        None => number::is_real(value),
    }))
}

fn is_integer(_: &mut Mutator, arguments: &[Value]) -> Result {
    let value = arguments[0];
    Ok(Value::boolean(match value.as_flonum() {
        Some(x) => x.is_finite() && x.fract() == 0.0,
        None => is_exact_integer(value),
    }))
}

fn exactness(who: &'static str, arguments: &[Value], exact: bool) -> Result {
    let value = arguments[0];
    if !number::is_number(value) {
        return Err(Call::new(who, arguments).wrong(0, "number"));
    }
    Ok(Value::boolean(number::parts(value).0.as_flonum().is_none() == exact))
}

/// Whether `test` is true for a flonum that is the number itself, or a part of a complex number.
fn has_part(who: &'static str, arguments: &[Value], test: fn(f64) -> bool) -> Result {
    let value = arguments[0];
    if !number::is_number(value) {
        return Err(Call::new(who, arguments).wrong(0, "number"));
    }
    let (real, imaginary) = number::parts(value);
    let holds = |part: Value| part.as_flonum().is_some_and(test);
    Ok(Value::boolean(holds(real) || holds(imaginary)))
}

fn is_zero(_: &mut Mutator, arguments: &[Value]) -> Result {
    match number::is_complex(arguments[0]) {
        true => number::same(1, arguments[0], Value::fixnum(0)).map(Value::boolean),
        false => sign_test("zero?", arguments, |x| x == 0.0),
    }
}

fn sign_test(who: &'static str, arguments: &[Value], test: fn(f64) -> bool) -> Result {
    let value = arguments[0];
    if let Some(x) = value.as_flonum() {
        return Ok(Value::boolean(test(x)));
    }
    let sign = Call::new(who, arguments).number(0)?.sign();
    Ok(Value::boolean(test(f64::from(sign))))
}

fn radix(call: Call<'_>) -> Result<u32> {
    match call.optional(1).map(|_| call.fixnum(1)).transpose()? {
        None => Ok(10),
        Some(n @ 2..=36) => Ok(n as u32),
        Some(_) => Err(call.outside(1, "2 <= radix <= 36")),
    }
}

fn number_to_string(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("number->string", arguments);
    let value = call.value(0);
    if !number::is_number(value) {
        return Err(call.wrong(0, "number"));
    }
    let radix = radix(call)?;
    if number::is_complex(value) && radix > number::COMPLEX_RADIX_MAX {
        return Err(call.outside(1, "2 <= radix <= 18 for a complex number"));
    }
    let text = number::text_in_parts(value, radix, &mut || m.pause(&[]))?;
    Ok(m.string(&text)?)
}

fn string_to_number(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("string->number", arguments);
    let text = call.string(0)?;
    let radix = radix(call)?;
    match syntax::number::parse_in_parts(&text, radix, &mut || m.pause(&[]))? {
        Some(literal) => number::store_literal(m, &literal),
        None => Ok(Value::FALSE),
    }
}
