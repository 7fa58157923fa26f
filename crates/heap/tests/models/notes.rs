//! Models of the notes that threads make during concurrent marking (`src/heap/notes.rs`), in every
//! order of accesses.
//!
//! | mutant | must be caught because |
//! |---|---|
//! | a collector that does not take notes again after the threads have stopped | the last notes are not marked |
//! | a cycle that begins while threads of an abandoned cycle run | it marks values that are freed by then |
//! | a thread that notes in a buffer that it has returned | no collector reads that buffer |

#[expect(dead_code, unreachable_pub, reason = "some items are for the heap and its own tests")]
#[path = "../../src/heap/notes.rs"]
mod protocol;

use super::must_fail;
use core::ops::Range;
use loom::thread::{JoinHandle, spawn};
use protocol::{Noted, Notes};
use std::sync::Arc;

/// A value, represented by its address.
#[derive(Clone, Copy, Debug)]
struct At(usize);

impl Noted for At {
    fn address(self) -> usize {
        self.0
    }
}

const HEAP: Range<usize> = 0..100;
const OTHER: Range<usize> = 100..200;

fn model(check: impl Fn(Arc<Notes<At>>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    // A buffer is full with two values.
    builder.check(move || check(Arc::new(Notes::new(2))));
}

/// A thread that notes these values. It returns its buffer if `ends`.
fn thread(notes: &Arc<Notes<At>>, values: Range<usize>, ends: bool) -> JoinHandle<()> {
    let notes = Arc::clone(notes);
    spawn(move || {
        let own = notes.enlist();
        values.for_each(|value| notes.note(&own, At(value)));
        if ends {
            notes.delist(&own);
        }
    })
}

fn sorted(values: Vec<At>) -> Vec<usize> {
    let mut places: Vec<_> = values.into_iter().map(|At(place)| place).collect();
    places.sort_unstable();
    places
}

/// Two threads note three values each. One of them has ended before the collector takes the last
/// notes.
fn cycle(stop_and_take: fn(&Notes<At>, [JoinHandle<()>; 2]) -> Vec<At>) {
    model(move |notes| {
        notes.raise(HEAP, Box::new(|_| ()));
        let threads = [thread(&notes, 1..4, false), thread(&notes, 11..14, true)];
        let mut found = notes.take(HEAP.start);
        found.extend(stop_and_take(&notes, threads));
        notes.lower(HEAP.start);
        assert_eq!(sorted(found), [1, 2, 3, 11, 12, 13]);
    });
}

fn stop(threads: [JoinHandle<()>; 2]) {
    threads.into_iter().for_each(|thread| thread.join().expect("it only makes notes"));
}

#[test]
fn notes_made_before_the_threads_stop_are_found() {
    cycle(|notes, threads| {
        stop(threads);
        notes.take(HEAP.start)
    });
}

#[test]
fn a_collector_that_takes_no_notes_after_the_stop_is_caught() {
    must_fail(|| {
        cycle(|notes, threads| {
            let found = notes.take(HEAP.start);
            stop(threads);
            found
        });
    });
}

#[test]
fn each_heap_finds_its_own_notes() {
    model(|notes| {
        notes.raise(HEAP, Box::new(|_| ()));
        notes.raise(OTHER, Box::new(|_| ()));
        let threads = [thread(&notes, 99..101, false), thread(&notes, 101..102, false)];
        let mut found = notes.take(HEAP.start);
        stop(threads);
        assert_eq!(sorted(notes.take(OTHER.start)), [100, 101]);
        found.extend(notes.take(HEAP.start));
        assert_eq!(sorted(found), [99]);
    });
}

/// A cycle is abandoned while a thread makes notes for it. The noted values may be freed before the
/// next one begins.
fn given_up(begin_again: fn(&Notes<At>, JoinHandle<()>)) {
    model(move |notes| {
        notes.raise(HEAP, Box::new(|_| ()));
        let thread = thread(&notes, 1..2, false);
        notes.lower(HEAP.start);
        begin_again(&notes, thread);
        assert!(notes.take(HEAP.start).is_empty(), "freed, and found");
    });
}

#[test]
fn notes_of_an_abandoned_cycle_are_not_found_by_the_next() {
    given_up(|notes, thread| {
        thread.join().expect("it only makes notes");
        notes.raise(HEAP, Box::new(|_| ()));
    });
}

#[test]
fn a_cycle_that_begins_while_threads_of_the_last_one_run_is_caught() {
    must_fail(|| {
        given_up(|notes, thread| {
            notes.raise(HEAP, Box::new(|_| ()));
            thread.join().expect("it only makes notes");
        });
    });
}

/// A thread's last note, with or without a buffer.
fn last_note(note: fn(&Notes<At>)) {
    model(move |notes| {
        notes.raise(HEAP, Box::new(|_| ()));
        let ends = {
            let notes = Arc::clone(&notes);
            spawn(move || note(&notes))
        };
        let mut found = notes.take(HEAP.start);
        ends.join().expect("it only makes notes");
        found.extend(notes.take(HEAP.start));
        assert_eq!(sorted(found), [1]);
    });
}

#[test]
fn a_thread_without_a_buffer_can_make_notes() {
    last_note(|notes| {
        notes.delist(&notes.enlist());
        notes.note_directly(At(1));
    });
}

#[test]
fn a_note_in_a_returned_buffer_is_caught() {
    must_fail(|| {
        last_note(|notes| {
            let own = notes.enlist();
            notes.delist(&own);
            notes.note(&own, At(1));
        });
    });
}
