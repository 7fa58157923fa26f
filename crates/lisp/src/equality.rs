//! `eqv?`, `equal?` and the hashes that go with them. All end on cyclic data, none recurses.

mod hash;
#[cfg(test)]
mod tests;

pub use hash::{equal_hash, eqv_hash, text_hash};

use crate::heap::object::Kind;
use crate::text::{Text, bytes};
use crate::value::Value;
use std::collections::HashMap;

/// Comparisons that `equal` makes before it reckons with a cycle. Most data is smaller, and needs no
/// table.
const PLAIN_STEPS: usize = 10_000;

/// `eqv?`: identity, and numbers of the same exactness and value.
#[inline]
#[must_use]
pub fn eqv(a: Value, b: Value) -> bool {
    a == b || a.is_object() && b.is_object() && same_number(a, b)
}

fn same_number(a: Value, b: Value) -> bool {
    if a.kind() != b.kind() {
        return false;
    }
    match a.kind() {
        // By bits: 0.0 and -0.0 differ, a NaN is itself.
        Some(Kind::Flonum) => a.payload_word(0) == b.payload_word(0),
        Some(Kind::Bignum) => {
            a.flags() == b.flags()
                && a.size_words() == b.size_words()
                && (0..a.size_words()).all(|i| a.payload_word(i) == b.payload_word(i))
        }
        Some(Kind::Ratio | Kind::Complex) => {
            eqv(a.field_at(0), b.field_at(0)) && eqv(a.field_at(1), b.field_at(1))
        }
        _ => false,
    }
}

/// The answer for two values that need no look inside pairs and vectors; none for those.
#[inline]
fn shallow(a: Value, b: Value) -> Option<bool> {
    if a == b {
        return Some(true);
    }
    if a.is_pair() {
        return if b.is_pair() { None } else { Some(false) };
    }
    if !(a.is_object() && b.is_object()) || a.kind() != b.kind() {
        return Some(false);
    }
    match a.kind() {
        Some(Kind::Vector) if a.size_words() == b.size_words() => None,
        Some(Kind::Vector) => Some(false),
        Some(Kind::String) => Some(match (Text::of(a), Text::of(b)) {
            (Some(a), Some(b)) => a.same(b),
            _ => false,
        }),
        Some(Kind::Bytevector) => Some(same_bytes(a, b)),
        _ => Some(same_number(a, b)),
    }
}

fn same_bytes(a: Value, b: Value) -> bool {
    match (a.bytevector_length(), b.bytevector_length()) {
        (Some(x), Some(y)) => {
            x == y && bytes::same(bytes::payload(a) + 8, bytes::payload(b) + 8, x)
        }
        _ => false,
    }
}

/// `equal?`: the same shape with `eqv?` leaves, strings and bytevectors by content.
#[must_use]
pub fn equal(a: Value, b: Value) -> bool {
    if let Some(answer) = shallow(a, b) {
        return answer;
    }
    let mut comparison = Comparison { open: vec![(a, b)], steps: 0, classes: Classes::default() };
    while let Some((a, b)) = comparison.open.pop() {
        if !comparison.agree(a, b) {
            return false;
        }
    }
    true
}

/// An `equal?` under way.
struct Comparison {
    /// Pairs or vectors still to compare.
    open: Vec<(Value, Value)>,
    steps: usize,
    classes: Classes,
}

impl Comparison {
    /// Compares down the spine of two lists, or the elements of two vectors; nested ones are put
    /// off. `false` when a difference is found.
    fn agree(&mut self, mut a: Value, mut b: Value) -> bool {
        loop {
            self.steps += 1;
            // Two places taken for equal once need no second look: so cycles end (union-find, as
            // in Adams and Dybvig, "Efficient nondestructive equality checking").
            if self.steps > PLAIN_STEPS && !self.classes.join(a.to_word(), b.to_word()) {
                return true;
            }
            let (Some((a_car, a_cdr)), Some((b_car, b_cdr))) = (a.uncons(), b.uncons()) else {
                return (0..a.size_words()).all(|i| self.put_off(a.field_at(i), b.field_at(i)));
            };
            if !self.put_off(a_car, b_car) {
                return false;
            }
            match shallow(a_cdr, b_cdr) {
                Some(answer) => return answer,
                None => (a, b) = (a_cdr, b_cdr),
            }
        }
    }

    /// Compares what is quick to compare, puts the rest on `open`; `false` when they differ.
    fn put_off(&mut self, a: Value, b: Value) -> bool {
        let answer = shallow(a, b);
        if answer.is_none() {
            self.open.push((a, b));
        }
        answer != Some(false)
    }
}

/// Sets of places taken for equal.
#[derive(Default)]
struct Classes {
    parents: HashMap<u64, u64>,
}

impl Classes {
    /// Joins the classes of two places; `false` when they were one already.
    fn join(&mut self, a: u64, b: u64) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        self.parents.insert(a, b);
        true
    }

    /// The representative of a class; halves the path on the way.
    fn find(&mut self, mut place: u64) -> u64 {
        while let Some(&parent) = self.parents.get(&place) {
            let Some(&grandparent) = self.parents.get(&parent) else { return parent };
            self.parents.insert(place, grandparent);
            place = grandparent;
        }
        place
    }
}
