//! Powers, roots, the transcendental functions, and the parts of complex numbers.

use super::Primitive;
use super::call::Call;
use kyocho_heap::heap::Mutator;
use kyocho_heap::number;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("expt", 2, |m, a| number::expt(m, a[0], a[1])),
    Primitive::exactly("sqrt", 1, |m, a| number::sqrt(m, a[0])),
    Primitive::exactly("exp", 1, |m, a| number::exp(m, a[0])),
    Primitive::between("log", 1, 2, |m, a| match a {
        [value, base] => number::log_base(m, *value, *base),
        _ => number::log(m, a[0]),
    }),
    Primitive::exactly("sin", 1, |m, a| number::sin(m, a[0])),
    Primitive::exactly("cos", 1, |m, a| number::cos(m, a[0])),
    Primitive::exactly("tan", 1, |m, a| number::tan(m, a[0])),
    Primitive::exactly("asin", 1, |m, a| number::asin(m, a[0])),
    Primitive::exactly("acos", 1, |m, a| number::acos(m, a[0])),
    Primitive::between("atan", 1, 2, |m, a| match a {
        [y, x] if *x != Value::ABSENT => number::atan2(m, *y, *x),
        _ => number::atan(m, a[0]),
    }),
    Primitive::exactly("make-rectangular", 2, rectangular),
    Primitive::exactly("make-polar", 2, |m, a| number::polar(m, a[0], a[1])),
    Primitive::exactly("real-part", 1, |_, a| part("real-part", a).map(|parts| parts.0)),
    Primitive::exactly("imag-part", 1, |_, a| part("imag-part", a).map(|parts| parts.1)),
    Primitive::exactly("magnitude", 1, |m, a| number::magnitude(m, a[0])),
    Primitive::exactly("angle", 1, |m, a| number::angle(m, a[0])),
];

fn rectangular(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("make-rectangular", arguments);
    call.number(0)?;
    call.number(1)?;
    number::rectangular(m, arguments[0], arguments[1])
}

fn part(who: &'static str, arguments: &[Value]) -> Result<(Value, Value)> {
    if !number::is_number(arguments[0]) {
        return Err(Call::new(who, arguments).wrong(0, "number"));
    }
    Ok(number::parts(arguments[0]))
}
