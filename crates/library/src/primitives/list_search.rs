//! Searching a list for an element: `member`, `assoc` and similar procedures.
//!
//! A comparison with `equal?` takes time proportional to the size of the objects. So one call
//! searches only a bounded part of the list. The prelude calls again for the next part. Between two
//! calls the thread may be interrupted, and collections may run.

use super::Primitive;
use super::call::Call;
use kyocho_heap::equality::{equal, eqv};
use kyocho_heap::heap::pause::PART;
use kyocho_heap::heap::{Kept, Mutator, Unrooted};
use kyocho_heap::raise::Result;
use kyocho_heap::text::Text;
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("memq", 2, |m, a| {
        member(m, Call::new("memq", a), usize::MAX, |x, y| x == y)
    }),
    Primitive::exactly("memv", 2, |m, a| member(m, Call::new("memv", a), usize::MAX, eqv)),
    Primitive::exactly("%case-memv", 2, |m, a| member(m, Call::new("memv", a), usize::MAX, eqv)),
    Primitive::exactly("%member-part", 2, |m, a| {
        member(m, Call::new("member", a), elements_max(a[0]), equal)
    }),
    Primitive::exactly("assq", 2, |m, a| {
        association(m, Call::new("assq", a), usize::MAX, |x, y| x == y)
    }),
    Primitive::exactly("assv", 2, |m, a| association(m, Call::new("assv", a), usize::MAX, eqv)),
    Primitive::exactly("%assoc-part", 2, |m, a| {
        association(m, Call::new("assoc", a), elements_max(a[0]), equal)
    }),
];

/// Maximum work in one part: a millisecond or less. Comparing an element without parts costs 1.
const PART_COST: usize = 1 << 16;
/// Bytes of a string or bytevector that cost as much as one comparison.
const BYTES_AT_A_TIME: usize = 64;
/// Assumed cost of a pair or vector, whose size is not known in advance.
const NESTED_COST: usize = 64;

/// How many elements one part of a search for `key` has.
fn elements_max(key: Value) -> usize {
    let bytes = Text::of(key).map(Text::length).or_else(|| key.bytevector_length());
    let cost = match bytes {
        Some(bytes) => 1 + bytes / BYTES_AT_A_TIME,
        None if key.is_pair() || key.vector_length().is_some() => NESTED_COST,
        None => 1,
    };
    (PART_COST / cost).max(1)
}

/// A walk over the pairs of a list. A circular list and an improper one are errors.
struct Walk<'m> {
    rest: Unrooted<'m>,
    slow: Unrooted<'m>,
    steps: usize,
}

impl<'m> Walk<'m> {
    fn new(list: Unrooted<'m>) -> Self {
        Self { rest: list, slow: list, steps: 0 }
    }

    /// The next pair and its car.
    fn step(&mut self) -> Option<(Unrooted<'m>, Unrooted<'m>)> {
        let place = self.rest;
        let (car, cdr) = place.uncons()?;
        if self.steps > 0 && self.steps & 1 == 0 {
            self.slow = self.slow.cdr().unwrap_or(Unrooted::NIL);
            if self.slow == place {
                return None;
            }
        }
        self.steps += 1;
        self.rest = cdr;
        Some((place, car))
    }

    /// Whether a pause is due.
    const fn is_due(&self) -> bool {
        self.steps.is_multiple_of(PART)
    }

    /// The values that a pause must keep.
    const fn kept(&self) -> [Kept; 2] {
        [self.rest.kept(), self.slow.kept()]
    }

    /// Continues a walk after a pause and `steps` steps.
    const fn of([rest, slow]: [Unrooted<'m>; 2], steps: usize) -> Self {
        Self { rest, slow, steps }
    }

    fn is_at_end(&self) -> bool {
        self.rest.value().is_nil()
    }
}

/// The first tail whose car is the `same` as argument 0; `#f` if there is none. If the part of the
/// list ends first, the number of elements searched.
fn member(
    m: &mut Mutator,
    call: Call<'_>,
    elements_max: usize,
    same: fn(Value, Value) -> bool,
) -> Result {
    search(m, call, elements_max, |place, car| {
        Ok(same(call.value(0), car.value()).then(|| place.value()))
    })
}

/// The first pair of an association list whose car is the `same` as argument 0; `#f` if there is
/// none. If the part of the list ends first, the number of elements searched.
fn association(
    m: &mut Mutator,
    call: Call<'_>,
    elements_max: usize,
    same: fn(Value, Value) -> bool,
) -> Result {
    search(m, call, elements_max, |_, entry| {
        let key = entry.car().ok_or_else(|| call.wrong(1, "association list"))?;
        Ok(same(call.value(0), key.value()).then(|| entry.value()))
    })
}

/// The first result of `found` for the tails of argument 1 and their cars; `#f` if there is none.
/// After `elements_max` elements, the number of elements searched.
fn search(
    m: &mut Mutator,
    call: Call<'_>,
    elements_max: usize,
    found: impl Fn(Unrooted<'_>, Unrooted<'_>) -> Result<Option<Value>>,
) -> Result {
    let mut walk = Walk::new(m.unrooted(call.value(1)));
    while let Some((place, car)) = walk.step() {
        if let Some(value) = found(place, car)? {
            return Ok(value);
        }
        if walk.steps == elements_max {
            return Ok(Value::fixnum(walk.steps as i64));
        }
        if walk.is_due() {
            let steps = walk.steps;
            let kept = m.pause_keeping(walk.kept())?;
            walk = Walk::of(kept.unrooted(m), steps);
        }
    }
    if walk.is_at_end() { Ok(Value::FALSE) } else { Err(call.wrong(1, "proper list")) }
}
