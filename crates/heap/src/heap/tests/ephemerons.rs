//! Ephemerons, in collections with the world stopped and in concurrent ones. Freed memory is
//! overwritten.

use super::beside::{LENGTH, is_whole, poisoned, while_unmarked};
use super::{mutator, small};
use crate::heap::{Limits, Mutator};
use crate::value::Value;

fn large(m: &mut Mutator, content: i64) -> Value {
    m.vector(LENGTH, Value::fixnum(content)).unwrap()
}

fn collect(m: &Mutator, root: Value) {
    m.heap.collect(|marker| marker.mark(root));
}

#[test]
fn values_read_from_an_ephemeron_during_a_cycle_survive_it() {
    let mut m = poisoned();
    let (key, datum) = (large(&mut m, 1), large(&mut m, 2));
    let both = m.ephemeron(key, datum).unwrap();
    let taken = while_unmarked(&mut m, both, |_| both.ephemeron_datum());
    assert_eq!(taken, Some(datum));
    assert!(is_whole(datum, 2), "a datum that was read");
    assert!(both.ephemeron_is_broken() && !is_whole(key, 1), "its key was not read");

    let (key, datum) = (large(&mut m, 1), large(&mut m, 2));
    let both = m.ephemeron(key, datum).unwrap();
    assert_eq!(while_unmarked(&mut m, both, |_| both.ephemeron_key()), Some(key));
    assert!(is_whole(key, 1) && is_whole(datum, 2), "a key that was read, and its datum");
    assert!(!both.ephemeron_is_broken());
    collect(&m, both);
    assert!(both.ephemeron_is_broken() && !is_whole(key, 1) && !is_whole(datum, 2));
}

#[test]
fn an_ephemeron_made_during_a_cycle_is_not_broken_by_it() {
    let mut m = poisoned();
    let holder = m.vector(1, Value::NIL).unwrap();
    // New objects are allocated between older ones, where the marker expects marks.
    collect(&m, holder);
    let (made, key) = while_unmarked(&mut m, holder, |m| {
        let key = m.cons(Value::fixnum(1), Value::NIL).unwrap();
        let made = m.ephemeron(key, Value::fixnum(2)).unwrap();
        // The marker scans it, because overwritten values are recorded.
        assert!(holder.set_field(0, made) && holder.set_field(0, Value::NIL));
        (made, key)
    });
    assert_eq!(made.ephemeron_key(), Some(key));
    assert_eq!(key.uncons(), Some((Value::fixnum(1), Value::NIL)));
    assert_eq!(made.ephemeron_datum(), Some(Value::fixnum(2)));
}

#[test]
fn chains_hold_and_break_in_any_order() {
    const COUNT: usize = 20_000;
    for (mark_stack_max, reversed, concurrent) in [
        (1 << 20, false, false),
        (1 << 20, true, false),
        (64, true, false),
        (64, false, true),
        (64, true, true),
    ] {
        let limits = Limits { mark_stack_max, bytes_max: 64 << 20, ..small() };
        let mut m = mutator(limits);
        let first = m.cons(Value::NIL, Value::NIL).unwrap();
        let mut key = first;
        let mut links = Vec::new();
        for i in 0..COUNT {
            let datum = m.cons(Value::fixnum(i as i64), Value::NIL).unwrap();
            links.push(m.ephemeron(key, datum).unwrap());
            key = datum;
        }
        if reversed {
            links.reverse();
        }
        let chain = m.vector_of(&links).unwrap();
        let root = m.cons(chain, first).unwrap();
        if concurrent {
            while_unmarked(&mut m, root, |_| ());
        } else {
            collect(&m, root);
        }
        assert!(
            links.iter().all(|link| !link.ephemeron_is_broken()),
            "{mark_stack_max} {reversed}"
        );
        let sum: i64 =
            links.iter().filter_map(|link| link.ephemeron_datum()?.car()?.as_fixnum()).sum();
        assert_eq!(sum, (COUNT * (COUNT - 1) / 2) as i64);
        if concurrent {
            while_unmarked(&mut m, chain, |_| ());
        } else {
            collect(&m, chain);
        }
        assert!(links.iter().all(|link| link.ephemeron_is_broken()), "{mark_stack_max} {reversed}");
    }
}
