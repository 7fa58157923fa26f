//! A sweep in slices, concurrent with threads that allocate.

use super::beside::{LENGTH, is_whole, poisoned};
use crate::heap::{Mutator, Unswept};
use crate::value::Value;
use std::sync::Arc;

/// Runs `then` when everything reachable from `live` is marked and nothing is swept.
fn unswept(m: &mut Mutator, live: Value, then: impl FnOnce(&mut Mutator, Unswept<'_>)) {
    let heap = Arc::clone(&m.heap);
    let mut marks = heap.empty_marks();
    let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
        marker.note_no_more();
    });
    cycle.mark(&[live]);
    cycle.mark_all();
    let (unswept, dead) = cycle.end();
    drop(dead);
    then(m, unswept);
}

fn vectors(m: &mut Mutator, count: usize, content: i64) -> Vec<Value> {
    (0..count).map(|_| m.vector(LENGTH, Value::fixnum(content)).unwrap()).collect()
}

/// Keeps half of the vectors, in groups of some blocks, so that there are free blocks between them.
fn half(m: &mut Mutator, count: usize) -> (Value, Vec<Value>) {
    let made = vectors(m, count, 7);
    let kept: Vec<Value> = made.chunks(128).step_by(2).flatten().copied().collect();
    (m.vector_of(&kept).unwrap(), kept)
}

#[test]
fn a_thread_that_finds_no_memory_sweeps() {
    let mut m = poisoned();
    let limit_bytes = m.heap.limits().bytes_max;
    let (live, kept) = half(&mut m, limit_bytes * 3 / 4 / (8 * LENGTH));
    unswept(&mut m, live, |m, unswept| {
        // More than was free before.
        let made = vectors(m, limit_bytes * 2 / 5 / (8 * LENGTH), 8);
        assert!(kept.iter().all(|&vector| is_whole(vector, 7)));
        assert!(made.iter().all(|&vector| is_whole(vector, 8)));
        unswept.finish();
        assert!(kept.iter().all(|&vector| is_whole(vector, 7)));
        assert!(made.iter().all(|&vector| is_whole(vector, 8)));
    });
}

#[test]
fn a_large_object_made_before_the_end_of_a_sweep_survives_it() {
    let mut m = poisoned();
    // Free blocks at low addresses, which the sweep reaches last.
    vectors(&mut m, 500, 6);
    m.heap.collect(|_| ());
    let live = m.vector(LENGTH, Value::fixnum(7)).unwrap();
    unswept(&mut m, live, |m, unswept| {
        let large: Vec<Value> =
            (0..20).map(|i| m.vector(10_000, Value::fixnum(i)).unwrap()).collect();
        unswept.finish();
        vectors(m, 500, 8);
        for (i, vector) in large.into_iter().enumerate() {
            let content = Some(Value::fixnum(i as i64));
            assert!((0..10_000).all(|at| vector.vector_ref(at) == content), "vector {i}");
        }
        assert!(is_whole(live, 7));
    });
}

#[test]
fn an_aborted_sweep_frees_nothing_by_cleared_marks() {
    let mut m = poisoned();
    let (live, kept) = half(&mut m, 1000);
    unswept(&mut m, live, |_, unswept| drop(unswept));
    // A collection that is aborted after it has cleared all marks.
    let heap = Arc::clone(&m.heap);
    let given_up = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        heap.collect(|_| std::panic::resume_unwind(Box::new("given up")))
    }));
    assert!(given_up.is_err());
    let made = vectors(&mut m, 500, 8);
    assert!(kept.iter().all(|&vector| is_whole(vector, 7)));
    assert!(made.iter().all(|&vector| is_whole(vector, 8)));
}

#[test]
fn a_sweep_in_slices_finds_the_same_as_one_without_slices() {
    let held = |parts: bool| {
        let mut m = poisoned();
        let (live, _) = half(&mut m, 1000);
        let mut held_bytes = 0;
        unswept(&mut m, live, |_, mut unswept| {
            while parts && unswept.sweep_some() {}
            held_bytes = unswept.finish().held_bytes;
        });
        held_bytes
    };
    assert_eq!(held(true), held(false));
    assert!(held(true) > 500 * 8 * LENGTH);
}
