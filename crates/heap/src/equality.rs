//! `eqv?`, `equal?` and the matching hashes. All of them terminate on cyclic data, and none
//! recurses along pairs or vectors.

mod hash;
#[cfg(test)]
mod tests;

pub use hash::{equal_hash, eqv_hash, text_hash};

use crate::heap::Mutator;
use crate::heap::object::Kind;
use crate::heap::pause::PART;
use crate::places::Places;
use crate::raise::Result;
use crate::text::{Text, bytes};
use crate::value::Value;

/// Comparisons that `equal` makes before it guards against cycles. Most data are smaller and need
/// no table.
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
        // By bits: 0.0 differs from -0.0, and a NaN equals itself.
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

/// The answer for two values, if it does not depend on the contents of pairs or vectors; otherwise
/// `None`.
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

/// `equal?`: the same structure with `eqv?` leaves. Strings and bytevectors are compared by
/// content.
#[must_use]
pub fn equal(a: Value, b: Value) -> bool {
    shallow(a, b).unwrap_or_else(|| {
        let mut comparison = Comparison::of(a, b);
        loop {
            if let Some(answer) = comparison.go_on(usize::MAX) {
                return answer;
            }
        }
    })
}

/// As [`equal`], for two arguments of a primitive, in slices.
///
/// # Errors
/// As [`Mutator::pause`].
pub fn equal_in_parts(m: &mut Mutator, a: Value, b: Value) -> Result<bool> {
    if let Some(answer) = shallow(a, b) {
        return Ok(answer);
    }
    let mut comparison = Comparison::of(a, b);
    loop {
        if let Some(answer) = comparison.go_on(PART) {
            return Ok(answer);
        }
        m.pause_with(&mut comparison.open)?;
    }
}

/// The state of an `equal?`.
struct Comparison {
    /// Comparisons still to make, in groups of three: two pairs, or two vectors of the same length,
    /// and the index to continue from.
    open: Vec<Value>,
    steps: usize,
    classes: Classes,
}

impl Comparison {
    fn of(a: Value, b: Value) -> Self {
        let mut comparison = Self { open: Vec::new(), steps: 0, classes: Classes::default() };
        comparison.put_on(a, b, 0);
        comparison
    }

    fn put_on(&mut self, a: Value, b: Value, from: usize) {
        self.open.extend([a, b, Value::fixnum(from as i64)]);
    }

    /// Compares about `elements` elements. Returns the answer if it is known.
    fn go_on(&mut self, elements: usize) -> Option<bool> {
        let mut left = elements;
        while let [.., a, b, from] = self.open[..] {
            if left == 0 {
                return None;
            }
            self.open.truncate(self.open.len() - 3);
            let agree = if a.is_pair() {
                self.agree(a, b, &mut left)
            } else {
                self.agree_from(a, b, from.as_fixnum().unwrap_or(0) as usize, &mut left)
            };
            if !agree {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whether two objects must be compared. Two objects already assumed equal need no second
    /// comparison, so cycles end (union-find, as in Adams and Dybvig, "Efficient nondestructive
    /// equality checking").
    fn are_new(&mut self, a: Value, b: Value) -> bool {
        self.steps += 1;
        self.steps <= PLAIN_STEPS || self.classes.join(a.to_word(), b.to_word())
    }

    /// Compares two lists along their cdrs. Nested data, and elements beyond `left`, are put on
    /// `open`. Returns `false` at a difference.
    fn agree(&mut self, mut a: Value, mut b: Value, left: &mut usize) -> bool {
        while let (Some((a_car, a_cdr)), Some((b_car, b_cdr))) = (a.uncons(), b.uncons()) {
            if *left == 0 {
                break;
            }
            *left -= 1;
            if !self.are_new(a, b) {
                return true;
            }
            if !self.compare_or_defer(a_car, b_car) {
                return false;
            }
            match shallow(a_cdr, b_cdr) {
                Some(answer) => return answer,
                None => (a, b) = (a_cdr, b_cdr),
            }
        }
        self.put_on(a, b, 0);
        true
    }

    /// Compares elements of two vectors from index `from`, at most `left` of them.
    fn agree_from(&mut self, a: Value, b: Value, from: usize, left: &mut usize) -> bool {
        if from == 0 && !self.are_new(a, b) {
            return true;
        }
        let end = a.size_words().min(from.saturating_add(*left));
        *left -= end - from;
        if end < a.size_words() {
            self.put_on(a, b, end);
        }
        *left = left.saturating_sub(1);
        (from..end).all(|i| self.compare_or_defer(a.field_at(i), b.field_at(i)))
    }

    /// Compares two values if that is quick, else puts them on `open`. Returns `false` if they
    /// differ.
    fn compare_or_defer(&mut self, a: Value, b: Value) -> bool {
        let answer = shallow(a, b);
        if answer.is_none() {
            self.put_on(a, b, 0);
        }
        answer != Some(false)
    }
}

/// Classes of objects assumed equal.
#[derive(Default)]
struct Classes {
    parents: Places<u64>,
}

impl Classes {
    /// Joins the classes of two objects. Returns `false` if they were in the same class.
    fn join(&mut self, a: u64, b: u64) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        self.parents.insert(a, b);
        true
    }

    /// The representative of a class. Halves the path to it.
    fn find(&mut self, mut place: u64) -> u64 {
        while let Some(&parent) = self.parents.get(place) {
            let Some(&grandparent) = self.parents.get(parent) else { return parent };
            self.parents.insert(place, grandparent);
            place = grandparent;
        }
        place
    }
}
