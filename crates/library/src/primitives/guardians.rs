//! The primitives of `(kyocho guardian)`.

use super::Primitive;
use super::call::Call;
use kyocho_heap::heap::Guardian;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("%make-guardian", 0, |m, _| m.guardian()),
    Primitive::exactly("%guardian-watch!", 2, |m, a| {
        guardian(Call::new("%guardian-watch!", a))?.watch(m, a[1])?;
        Ok(Value::UNSPECIFIED)
    }),
    Primitive::exactly("%guardian-take!", 1, |_, a| {
        let taken = guardian(Call::new("%guardian-take!", a))?.take();
        Ok(taken.unwrap_or(Value::FALSE))
    }),
];

fn guardian(call: Call<'_>) -> Result<&'static Guardian> {
    call.value(0).as_foreign().ok_or_else(|| call.wrong(0, "guardian"))
}
