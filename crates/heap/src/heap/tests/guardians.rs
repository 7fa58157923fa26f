//! Guardians in concurrent collections, and guardians that helpers find. Freed memory is
//! overwritten.

use super::beside::{LENGTH, is_whole, poisoned, while_unmarked};
use super::helped::{help_when_invited, helped};
use super::mutator;
use crate::heap::{Guardian, Mutator};
use crate::value::Value;

fn large(m: &mut Mutator, content: i64) -> Value {
    m.vector(LENGTH, Value::fixnum(content)).unwrap()
}

fn watch(m: &Mutator, guardian: Value, object: Value) {
    guardian.as_foreign::<Guardian>().unwrap().watch(m, object).unwrap();
}

fn take(guardian: Value) -> Option<Value> {
    guardian.as_foreign::<Guardian>().unwrap().take()
}

#[test]
fn an_unreachable_object_is_saved_with_everything_reachable_from_it() {
    let mut m = poisoned();
    let guardian = m.guardian().unwrap();
    let inner = large(&mut m, 1);
    let outer = m.cons(inner, Value::NIL).unwrap();
    watch(&m, guardian, outer);
    while_unmarked(&mut m, guardian, |_| ());
    // The guardian keeps the object until it is taken.
    m.heap.collect(|marker| marker.mark(guardian));
    assert!(is_whole(inner, 1));
    assert_eq!((take(guardian), take(guardian)), (Some(outer), None));
    assert_eq!(outer.car(), Some(inner));
    m.heap.collect(|marker| marker.mark(guardian));
    assert!(!is_whole(inner, 1), "it was taken, and is unreachable again");
}

#[test]
fn an_object_taken_during_a_cycle_survives_it() {
    let mut m = poisoned();
    let guardian = m.guardian().unwrap();
    let object = large(&mut m, 1);
    watch(&m, guardian, object);
    m.heap.collect(|marker| marker.mark(guardian));
    assert_eq!(while_unmarked(&mut m, guardian, |_| take(guardian)), Some(object));
    assert!(is_whole(object, 1));
}

#[test]
fn an_object_watched_during_a_cycle_counts_as_reachable() {
    let mut m = poisoned();
    let guardian = m.guardian().unwrap();
    // New objects are allocated between older ones, where the marker expects marks.
    m.heap.collect(|marker| marker.mark(guardian));
    let object = while_unmarked(&mut m, guardian, |m| {
        let object = m.cons(Value::fixnum(1), Value::NIL).unwrap();
        watch(m, guardian, object);
        object
    });
    assert_eq!(take(guardian), None);
    m.heap.collect(|marker| marker.mark(guardian));
    assert_eq!(take(guardian), Some(object));
}

#[test]
fn guardians_found_by_helpers_save_their_objects() {
    let mut m = mutator(helped(false));
    help_when_invited(&m.heap, |heap| {
        heap.help(|| ());
    });
    let guardians: Vec<Value> = (0..50).map(|_| m.guardian().unwrap()).collect();
    for (i, &guardian) in guardians.iter().enumerate() {
        let object = large(&mut m, i as i64);
        watch(&m, guardian, object);
    }
    let all = m.vector_of(&guardians).unwrap();
    let done = m.heap.collect(|marker| marker.mark(all));
    assert!(done.helped_bytes > 0, "{done:?}");
    for (i, &guardian) in guardians.iter().enumerate() {
        let saved = take(guardian).unwrap_or_else(|| panic!("guardian {i}"));
        assert!(is_whole(saved, i as i64), "guardian {i}");
    }
}
