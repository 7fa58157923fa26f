//! A cycle concurrent with the program: the objects that it must not free, one case at a time.
//! Freed memory is overwritten.

use super::{mutator, small};
use crate::heap::marks::BLOCK_BYTES;
use crate::heap::object::GRANULE_BYTES;
use crate::heap::word::WORD_BYTES;
use crate::heap::{Limits, Mutator, Torture, location};
use crate::value::Value;
use kyocho_syntax::location::Globals;
use kyocho_syntax::symbol::Symbol;

/// Long enough for a vector to have lines of its own.
pub(super) const LENGTH: usize = 200;

pub(super) fn poisoned() -> Mutator {
    let torture = Torture { every: u64::MAX, phase: 1, concurrent: true };
    mutator(Limits { torture: Some(torture), ..small() })
}

pub(super) fn is_whole(vector: Value, content: i64) -> bool {
    vector.vector_length() == Some(LENGTH)
        && (0..LENGTH).all(|i| vector.vector_ref(i) == Some(Value::fixnum(content)))
}

/// Runs `during` after a cycle with this root has begun and before any marking.
pub(super) fn while_unmarked<T>(
    m: &mut Mutator,
    root: Value,
    during: impl FnOnce(&mut Mutator) -> T,
) -> T {
    let heap = std::sync::Arc::clone(&m.heap);
    let mut marks = heap.empty_marks();
    let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
        marker.note_no_more();
    });
    let result = during(m);
    cycle.mark(&[root]);
    cycle.mark_all();
    drop(cycle.finish());
    result
}

#[test]
fn values_overwritten_during_a_cycle_survive_it() {
    type Overwrite = fn(Value, Value) -> bool;
    let ways: [(&str, Overwrite); 5] = [
        ("car", |holder, new| holder.car().is_some_and(|pair| pair.set_car(new))),
        ("cdr", |holder, new| holder.car().is_some_and(|pair| pair.set_cdr(new))),
        ("field", |holder, new| holder.cdr().is_some_and(|vector| vector.set_field(0, new))),
        ("element", |holder, new| holder.cdr().is_some_and(|vector| vector.vector_set(0, new))),
        ("exchange", |holder, new| {
            let vector = holder.cdr().unwrap();
            vector.compare_and_set_field(0, vector.field(0).unwrap(), new).is_ok()
        }),
    ];
    for (name, overwrite) in ways {
        let mut m = poisoned();
        let kept = m.vector(LENGTH, Value::fixnum(7)).unwrap();
        let (pair, vector) = (m.cons(kept, kept).unwrap(), m.vector(1, kept).unwrap());
        // One of the two refers to the object, and only in the place that is overwritten.
        let (pair, vector) = match name {
            "car" => (m.cons(kept, Value::NIL).unwrap(), Value::NIL),
            "cdr" => (m.cons(Value::NIL, kept).unwrap(), Value::NIL),
            _ => (Value::NIL, if vector.is_object() { vector } else { pair }),
        };
        let holder = m.cons(pair, vector).unwrap();
        while_unmarked(&mut m, holder, |_| assert!(overwrite(holder, Value::NIL), "{name}"));
        assert!(is_whole(kept, 7), "{name}");
        // The next collection finds it garbage.
        m.heap.collect(|marker| marker.mark(holder));
        assert!(!is_whole(kept, 7), "{name}");
    }
}

#[test]
fn the_overwritten_value_of_a_location_survives_the_cycle() {
    let mut m = poisoned();
    let top_level = Globals::default().make(Symbol::intern("x"));
    let kept = m.vector(LENGTH, Value::fixnum(7)).unwrap();
    location::set(&top_level, kept);
    while_unmarked(&mut m, Value::NIL, |_| location::set(&top_level, Value::NIL));
    assert!(is_whole(kept, 7));
    m.heap.collect(|_| ());
    assert!(!is_whole(kept, 7));
}

#[test]
fn objects_made_during_a_cycle_survive_it() {
    let mut m = poisoned();
    let made = while_unmarked(&mut m, Value::NIL, |m| {
        let short = m.vector(LENGTH, Value::fixnum(1)).unwrap();
        let large = m.vector(5000, short).unwrap();
        let pair = m.cons(Value::fixnum(3), Value::NIL).unwrap();
        (short, large, pair)
    });
    let (short, large, pair) = made;
    let later: Vec<Value> = (0..20).map(|_| m.vector(LENGTH, Value::fixnum(2)).unwrap()).collect();
    assert!(is_whole(short, 1) && later.iter().all(|&vector| is_whole(vector, 2)));
    assert_eq!(large.vector_ref(4999), Some(short));
    assert_eq!(pair.car(), Some(Value::fixnum(3)));
}

#[test]
fn an_object_made_during_a_cycle_may_begin_in_an_older_block() {
    const WORDS: usize = 1200;
    let mut m = poisoned();
    let base = crate::heap::lock(&m.heap.space).base();
    let block_of = |address: usize| (address - base) / BLOCK_BYTES;
    let holder = m.vector(1, Value::NIL).unwrap();
    m.heap.collect(|marker| marker.mark(holder));
    let made = while_unmarked(&mut m, holder, |m| {
        let blocks = crate::heap::lock(&m.heap.space).states.len();
        // The rest of the last block is adjacent to new blocks.
        m.heap.refill(&m.cells, 1, 2 * BLOCK_BYTES / GRANULE_BYTES).unwrap();
        let astride = core::iter::repeat_with(|| m.vector(WORDS, Value::TRUE).unwrap())
            .take(12)
            .find(|it| {
                let last = block_of(it.address() + WORDS * WORD_BYTES);
                block_of(it.address()) < blocks && last >= blocks
            })
            .expect("a vector lies across the end");
        // This makes the marker scan the object.
        assert!(holder.set_field(0, astride));
        astride
    });
    for i in 0..WORDS {
        assert_eq!(made.vector_ref(i), Some(Value::TRUE), "element {i}");
    }
}
