//! The pace of allocation during a cycle: threads must wait when they have taken more than the
//! cycle allows.

use super::beside::poisoned;
use super::{mutator, small};
use crate::heap::{Heap, Limits, Mutator, Pace};
use crate::value::Value;
use std::sync::Arc;

const LIMIT_BYTES: usize = 64 << 20;

/// A list of vectors of a thousand bytes.
fn list(m: &mut Mutator, count: usize) -> Value {
    (0..count).fold(Value::NIL, |list, _| {
        let vector = m.vector(123, Value::TRUE).unwrap();
        m.cons(vector, list).unwrap()
    })
}

/// Bytes taken since.
fn taken_bytes(heap: &Heap, since: u64) -> usize {
    (heap.statistics().taken_bytes - since) as usize
}

#[test]
fn threads_wait_until_more_is_marked() {
    let mut m = mutator(Limits { bytes_max: LIMIT_BYTES, ..small() });
    let heap = Arc::clone(&m.heap);
    let live = list(&mut m, 10_000);
    heap.collect(|marker| marker.mark(live));
    assert!(heap.collects_concurrently());
    let mut marks = heap.empty_marks();
    let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
        marker.note_no_more();
    });
    assert_eq!(heap.pace(), Pace::Even);
    let begin = heap.statistics().taken_bytes;
    let room_bytes = LIMIT_BYTES - heap.statistics().last.held_bytes;
    let take_until = |m: &mut Mutator, pace| {
        while heap.pace() < pace {
            assert!(taken_bytes(&heap, begin) < room_bytes, "all is taken at {:?}", heap.pace());
            m.vector(123, Value::TRUE).unwrap();
        }
    };
    take_until(&mut m, Pace::Behind);
    assert!(!heap.collection_wanted(), "no thread waits yet");
    take_until(&mut m, Pace::HeldUp);
    assert!(heap.collection_wanted(), "threads reach a safepoint");
    let held_up_bytes = taken_bytes(&heap, begin);
    cycle.mark(&[live]);
    while heap.pace() >= Pace::HeldUp {
        assert!(!cycle.mark_some(10), "all is marked, and threads still wait");
    }
    assert!(!heap.collection_wanted(), "they may continue");
    take_until(&mut m, Pace::HeldUp);
    assert!(taken_bytes(&heap, begin) > held_up_bytes);
    cycle.mark_all();
    assert!(!cycle.mark_some(1) || cycle.is_all_marked(1));
    take_until(&mut m, Pace::Exhausted);
    // Half of the free memory; the other half is a reserve that causes no wait.
    assert!(taken_bytes(&heap, begin) < room_bytes / 2 + (1 << 20));
    drop(cycle.end());
    assert_eq!(heap.pace(), Pace::Ahead);
}

#[test]
fn garbage_of_one_cycle_does_not_make_the_next_one_stop_the_world() {
    let mut m = mutator(Limits { bytes_max: LIMIT_BYTES, ..small() });
    let heap = Arc::clone(&m.heap);
    // Nearly half of the heap.
    let live = list(&mut m, 29_000);
    heap.collect(|marker| marker.mark(live));
    for round in 0..10 {
        assert!(heap.collects_concurrently(), "round {round}");
        let mut marks = heap.empty_marks();
        let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
            marker.note_no_more();
        });
        while heap.pace() < Pace::Exhausted {
            m.vector(123, Value::TRUE).unwrap();
        }
        cycle.mark(&[live]);
        cycle.mark_all();
        let (unswept, dead) = cycle.end();
        drop(dead);
        unswept.finish();
    }
}

#[test]
fn memory_taken_in_a_cycle_is_not_counted_twice() {
    let mut m = mutator(Limits { bytes_max: LIMIT_BYTES, ..small() });
    m.spends_reserve = false;
    let heap = Arc::clone(&m.heap);
    let live = list(&mut m, 10_000);
    heap.collect(|marker| marker.mark(live));
    let mut marks = heap.empty_marks();
    let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
        marker.note_no_more();
    });
    list(&mut m, 20_000);
    cycle.mark(&[live]);
    cycle.mark_all();
    drop(cycle.finish());
    drop(marks);
    let free_bytes = LIMIT_BYTES - heap.statistics().last.held_bytes;
    // All memory except the reserve, and some for losses at the ends of runs.
    let vectors = (free_bytes - heap.limits().reserve_bytes()) / 1024 - 1000;
    list(&mut m, vectors);
}

#[test]
fn marking_is_complete_only_if_no_unmarked_value_was_overwritten_since() {
    let mut m = poisoned();
    let heap = Arc::clone(&m.heap);
    let kept = list(&mut m, 100);
    let holder = m.cons(kept, Value::NIL).unwrap();
    let mut marks = heap.empty_marks();
    let mut cycle = heap.begin_cycle(&mut marks, Box::new(|_| ()), |marker| {
        marker.note_no_more();
    });
    // As in the middle of a marking slice, after the notes are taken and before the holder is
    // scanned.
    assert!(cycle.mark_some(1000));
    assert!(holder.set_car(Value::NIL));
    assert!(!cycle.is_all_marked(1), "the overwritten value leads to more");
    while !cycle.is_all_marked(1) {}
    let known_bytes = cycle.known_bytes();
    assert!(known_bytes >= 100 * 124 * 8, "{known_bytes}");
    drop(cycle.end());
}
