//! Regions of shared memory as Lisp refers to them.

use super::call;
use kyocho_dsm::{Region, RegionSettings};
use kyocho_heap::heap::ForeignObject;
use kyocho_heap::number::{Number, store_big};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::sync::OnceLock;

/// A region; empty before it is created. Like a shared vector it is created exactly once.
#[derive(Debug, Default)]
struct SharedRegion(OnceLock<Region>);

impl ForeignObject for SharedRegion {}

pub(crate) const TABLE: &[Procedure] = &[
    Procedure::new("shared-region-place", 0, Some(0), |machine, _, _| {
        Ok(Control::Value(machine.mutator.foreign(Box::new(SharedRegion::default()))?))
    }),
    Procedure::new("shared-region-make!", 2, Some(3), make),
    Procedure::new("shared-region?", 1, Some(1), |_, frame, _| {
        let is_one = frame.get(0).as_foreign::<SharedRegion>().is_some();
        Ok(Control::Value(Value::boolean(is_one)))
    }),
    Procedure::new("shared-region-address", 1, Some(1), |machine, frame, _| {
        let address = argument("shared-region-address", frame, 0)?.address();
        Ok(Control::Value(store_big(&mut machine.mutator, &BigInt::from(address))?))
    }),
];

/// `(shared-region-make! place bytes [address])`
fn make(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "make-shared-region";
    let mut settings = RegionSettings::of(0);
    settings.bytes = address(WHO, frame, 1)? as usize;
    if count > 2 {
        settings.address = Some(address(WHO, frame, 2)?);
    }
    let region = call(WHO, machine, (frame, count), |node, thread| node.region(thread, settings))?;
    let value = frame.get(0);
    let place = value.as_foreign::<SharedRegion>().filter(|place| place.0.set(region).is_ok());
    place.ok_or_else(|| Raise::wrong_type(WHO, 1, "shared region that is not made", value))?;
    Ok(Control::Value(value))
}

/// Argument `i`: an exact integer of 64 bits.
fn address(who: &'static str, frame: Frame, i: u16) -> Result<u64> {
    let (value, position) = (frame.get(i), usize::from(i) + 1);
    let integer = Number::of(value).and_then(Number::into_big);
    let integer =
        integer.ok_or_else(|| Raise::wrong_type(who, position, "exact integer", value))?;
    integer.to_u64().ok_or_else(|| Raise::out_of_range(who, position, value, "0 <= n < 2^64"))
}

/// Argument `i`: a shared region that has been created.
pub(super) fn argument(who: &'static str, frame: Frame, i: u16) -> Result<Region> {
    let value = frame.get(i);
    let region = value.as_foreign::<SharedRegion>().and_then(|region| region.0.get().copied());
    region.ok_or_else(|| Raise::wrong_type(who, usize::from(i) + 1, "shared region", value))
}
