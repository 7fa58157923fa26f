//! Elements of shared vectors: values with the same meaning on all nodes, as three words.
//!
//! ```text
//!   [ 0 | low, high ]  exact integer     [ 2 | truth, 0 ]  boolean     [ 4 | 0, 0 ]  empty list
//!   [ 1 | low, high ]  flonum            [ 3 | code, 0 ]   character
//! ```
//! New memory is zero, so its elements are exact zeros.

use kyocho_heap::heap::Mutator;
use kyocho_heap::number;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;

pub(super) type Element = [u32; 3];

const INTEGER: u32 = 0;
const FLONUM: u32 = 1;
const BOOLEAN: u32 = 2;
const CHARACTER: u32 = 3;
const EMPTY: u32 = 4;

fn wide(kind: u32, bits: u64) -> Element {
    [kind, bits as u32, (bits >> 32) as u32]
}

/// A value as an element; `None` if it has no meaning on other nodes.
pub(super) fn of(value: Value) -> Option<Element> {
    if let Some(integer) = value.as_fixnum() {
        return Some(wide(INTEGER, integer as u64));
    }
    if let Some(number) = value.as_flonum() {
        return Some(wide(FLONUM, number.to_bits()));
    }
    if let Some(character) = value.as_character() {
        return Some([CHARACTER, character.into(), 0]);
    }
    match value {
        Value::FALSE => Some([BOOLEAN, 0, 0]),
        Value::TRUE => Some([BOOLEAN, 1, 0]),
        Value::NIL => Some([EMPTY, 0, 0]),
        _ => None,
    }
}

/// The value of an element.
///
/// # Errors
/// The element is invalid, because nodes wrote it at the same time without a lock.
pub(super) fn value(m: &mut Mutator, element: Element) -> Result<Value> {
    let [kind, low, high] = element;
    let bits = u64::from(low) | u64::from(high) << 32;
    match kind {
        INTEGER => number::integer(m, bits as i64),
        FLONUM => Ok(m.flonum(f64::from_bits(bits))?),
        BOOLEAN => Ok(Value::boolean(low != 0)),
        CHARACTER => char::from_u32(low).map(Value::character).ok_or_else(torn),
        EMPTY => Ok(Value::NIL),
        _ => Err(torn()),
    }
}

#[cold]
fn torn() -> Raise {
    let words = "shared-vector-ref: several nodes wrote this element at the same time; write it under a lock";
    Raise::error(words, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::{CHARACTER, of, value};
    use kyocho_heap::heap::ThreadContext;
    use kyocho_heap::heap::{Heap, Limits, Mutator};
    use kyocho_heap::value::Value;

    #[test]
    fn elements_convert_back_to_values_and_invalid_ones_are_errors() {
        let heap = Heap::new(Limits::default()).unwrap();
        let mut m = Mutator::new(heap, ThreadContext::default());
        let integers = [0, -1, Value::FIXNUM_MAX, Value::FIXNUM_MIN].map(Value::fixnum);
        let others = [Value::TRUE, Value::FALSE, Value::NIL, Value::character('鏡')];
        for shared in integers.into_iter().chain(others) {
            assert_eq!(value(&mut m, of(shared).unwrap()).unwrap(), shared);
        }
        let number = m.flonum(-0.1).unwrap();
        assert_eq!(value(&mut m, of(number).unwrap()).unwrap().as_flonum(), Some(-0.1));
        assert_eq!(of(Value::UNSPECIFIED), None);
        for torn in [[9, 0, 0], [CHARACTER, 0xD800, 0]] {
            assert!(value(&mut m, torn).is_err());
        }
    }
}
