//! Time limits as arguments of procedures.

use core::time::Duration;
use kyocho_heap::heap::ForeignObject;
use kyocho_heap::number::Number;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::Deadline;
use kyocho_vm::machine::wait::Wait;

/// A point in time as Lisp refers to it: nanoseconds on the monotonic clock.
#[derive(Debug)]
pub(crate) struct Time(pub(crate) u64);

impl ForeignObject for Time {}

/// A wait for `object` with a timeout, which is argument `place`.
pub(crate) fn until(
    who: &'static str,
    place: usize,
    object: Value,
    timeout: Option<Value>,
) -> Result<Wait> {
    Ok(Wait { deadline: deadline_of(who, place, timeout)?, ..Wait::on(object) })
}

/// The time limit in a timeout argument: seconds from now, a time object, or `#f` for none.
fn deadline_of(
    who: &'static str,
    place: usize,
    timeout: Option<Value>,
) -> Result<Option<Deadline>> {
    let Some(timeout) = timeout.filter(|timeout| timeout.is_true()) else { return Ok(None) };
    if let Some(time) = timeout.as_foreign::<Time>() {
        return Ok(Some(Deadline::at_ns(time.0)));
    }
    Ok(Deadline::after(duration_of(who, place, timeout)?))
}

/// The number of seconds in this argument.
pub(crate) fn duration_of(who: &'static str, place: usize, seconds: Value) -> Result<Duration> {
    let real = match seconds.as_fixnum() {
        Some(whole) => whole as f64,
        None => Number::of(seconds)
            .ok_or_else(|| Raise::wrong_type(who, place, "real number of seconds", seconds))?
            .to_real(),
    };
    if real.is_nan() {
        return Err(Raise::wrong_type(who, place, "real number of seconds", seconds));
    }
    Ok(Duration::try_from_secs_f64(real.max(0.0)).unwrap_or(Duration::MAX))
}
