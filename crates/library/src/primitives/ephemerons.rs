//! SRFI 124: ephemerons.

use super::Primitive;
use super::call::Call;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("make-ephemeron", 2, |m, a| Ok(m.ephemeron(a[0], a[1])?)),
    Primitive::exactly("ephemeron?", 1, |_, a| Ok(Value::boolean(a[0].is_kind(Kind::Ephemeron)))),
    Primitive::exactly("ephemeron-key", 1, |_, a| {
        let ephemeron = ephemeron(Call::new("ephemeron-key", a))?;
        Ok(ephemeron.ephemeron_key().unwrap_or(Value::FALSE))
    }),
    Primitive::exactly("ephemeron-datum", 1, |_, a| {
        let ephemeron = ephemeron(Call::new("ephemeron-datum", a))?;
        Ok(ephemeron.ephemeron_datum().unwrap_or(Value::FALSE))
    }),
    Primitive::exactly("ephemeron-broken?", 1, |_, a| {
        let ephemeron = ephemeron(Call::new("ephemeron-broken?", a))?;
        Ok(Value::boolean(ephemeron.ephemeron_is_broken()))
    }),
    // Its only purpose is to keep its argument reachable up to this call.
    Primitive::exactly("reference-barrier", 1, |_, _| Ok(Value::UNSPECIFIED)),
];

/// The ephemeron that is argument 0.
fn ephemeron(call: Call<'_>) -> Result {
    let value = call.value(0);
    if value.is_kind(Kind::Ephemeron) { Ok(value) } else { Err(call.wrong(0, "ephemeron")) }
}
