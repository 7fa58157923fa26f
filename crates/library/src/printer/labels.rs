//! Finds the pairs, vectors and records that need a datum label.

use super::{Style, is_compound};
use core::cell::RefCell;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::pause::PART;
use kyocho_heap::places::Places;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

/// Maximum number of objects visited without a table. A walk that ends sooner has visited each
/// object as often as it will be printed, so there is no cycle.
const PLAIN_STEPS: usize = 1000;

/// The objects with labels. A label gets its number when it is printed.
#[derive(Debug, Default)]
pub(super) struct Labels {
    places: Places<Option<usize>>,
    next: usize,
}

/// A label for printing at this point.
pub(super) struct Label {
    pub(super) number: usize,
    pub(super) is_first: bool,
}

impl Labels {
    /// The labels for printing `value` in this style.
    ///
    /// # Errors
    /// As [`Mutator::pause`], if a mutator is passed.
    pub(super) fn of(value: Value, style: Style, m: &mut Option<&mut Mutator>) -> Result<Self> {
        let places = match style {
            Style::Simple => Places::default(),
            Style::Shared => shared(value, m)?,
            Style::Write | Style::Display if is_small_tree(value) => Places::default(),
            Style::Write | Style::Display => cyclic(value, m)?,
        };
        Ok(Self { places, next: 0 })
    }

    pub(super) fn contains(&self, value: Value) -> bool {
        self.places.get(value.to_word()).is_some()
    }

    /// The label of an object, numbered at its first use.
    pub(super) fn number(&mut self, value: Value) -> Option<Label> {
        let number = self.places.get_mut(value.to_word())?;
        let is_first = number.is_none();
        let number = *number.get_or_insert(self.next);
        self.next += usize::from(is_first);
        Some(Label { number, is_first })
    }
}

/// Whether a short walk visits all of `value`.
fn is_small_tree(value: Value) -> bool {
    let mut open = vec![value];
    for _ in 0..PLAIN_STEPS {
        let Some(value) = open.pop() else { return true };
        if !is_compound(value) {
            continue;
        }
        if value.size_words() > PLAIN_STEPS {
            return false;
        }
        match value.uncons() {
            Some((car, cdr)) => open.extend([cdr, car]),
            // A record's type, its first word, is not printed and has no parts here.
            None => open.extend((0..value.size_words()).rev().map(|i| value.field_at(i))),
        }
    }
    false
}

/// A walk over objects in printing order, which reports when it enters and leaves each. The rest of
/// a list is inside the list.
struct Walk {
    /// Pending work, in groups of two: an object, and [`ENTER`], [`LEAVE`] or the index of the next
    /// element.
    open: Vec<Value>,
}

const ENTER: Value = Value::fixnum(-1);
const LEAVE: Value = Value::fixnum(-2);

impl Walk {
    /// Continues until it enters or leaves an object with parts. `enters` decides whether to visit
    /// the parts. Returns whether there is more to do.
    fn step(
        &mut self,
        enters: &mut impl FnMut(Value) -> bool,
        leaves: &mut impl FnMut(Value),
    ) -> bool {
        let Some(what) = self.open.pop() else { return false };
        let Some(value) = self.open.pop() else { return false };
        if what == LEAVE {
            leaves(value);
        } else if what == ENTER {
            if is_compound(value) && enters(value) {
                self.open.extend([value, LEAVE]);
                self.look_inside(value);
            }
        } else {
            self.elements(value, what.as_fixnum().unwrap_or(0) as usize);
        }
        true
    }

    fn look_inside(&mut self, value: Value) {
        match value.uncons() {
            Some((car, cdr)) => self.open.extend([cdr, ENTER, car, ENTER]),
            None => self.elements(value, 0),
        }
    }

    /// Continues with the elements of a vector or record from an index on, up to the next one that
    /// has parts.
    fn elements(&mut self, value: Value, from: usize) {
        let end = value.size_words().min(from + ELEMENTS);
        let found = (from..end).find(|&i| is_compound(value.field_at(i)));
        let next = found.map_or(end, |i| i + 1);
        if next < value.size_words() {
            self.open.extend([value, Value::fixnum(next as i64)]);
        }
        if let Some(i) = found {
            self.open.extend([value.field_at(i), ENTER]);
        }
    }

    /// Walks to the end; in slices if a mutator is passed.
    fn run(
        value: Value,
        m: &mut Option<&mut Mutator>,
        mut enters: impl FnMut(Value) -> bool,
        mut leaves: impl FnMut(Value),
    ) -> Result<()> {
        let mut walk = Self { open: vec![value, ENTER] };
        let mut steps = 0_usize;
        while walk.step(&mut enters, &mut leaves) {
            steps += 1;
            if let Some(m) = m
                && steps.is_multiple_of(PART)
            {
                m.pause_with(&mut walk.open)?;
            }
        }
        Ok(())
    }
}

/// Elements examined in one step.
const ELEMENTS: usize = 64;

/// Objects that are reached more than once.
fn shared(value: Value, m: &mut Option<&mut Mutator>) -> Result<Places<Option<usize>>> {
    let mut seen = Places::default();
    let mut again = Places::default();
    let enters = |value: Value| {
        let is_new = seen.get(value.to_word()).is_none();
        if is_new {
            seen.insert(value.to_word(), ());
        } else {
            again.insert(value.to_word(), None);
        }
        is_new
    };
    Walk::run(value, m, enters, |_| ())?;
    Ok(again)
}

/// Objects that the walk reaches again while it is still inside them: at least one on every cycle.
fn cyclic(value: Value, m: &mut Option<&mut Mutator>) -> Result<Places<Option<usize>>> {
    let is_inside = RefCell::new(Places::default());
    let mut labelled = Places::default();
    let enters = |value: Value| {
        let mut is_inside = is_inside.borrow_mut();
        match is_inside.get(value.to_word()) {
            Some(true) => labelled.insert(value.to_word(), None),
            Some(false) => {}
            None => {
                is_inside.insert(value.to_word(), true);
                return true;
            }
        }
        false
    };
    Walk::run(value, m, enters, |value| is_inside.borrow_mut().insert(value.to_word(), false))?;
    Ok(labelled)
}
