//! What threads note while a collector marks beside them (`src/heap/notes.rs`), in every order.
//!
//! | mutant | must be caught because |
//! |---|---|
//! | a collector that does not look again when the threads stand | the last notes are not marked |
//! | a cycle that begins while threads of the one given up run | it marks what is freed by then |
//! | a thread that notes in a buffer that it has given back | nobody looks there |

#[path = "../../src/heap/notes.rs"]
mod protocol;

use super::must_fail;
use core::ops::Range;
use loom::thread::{JoinHandle, spawn};
use protocol::{Noted, Notes};
use std::sync::Arc;

/// A value, by where it lies.
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
    // A buffer is full with the second value.
    builder.check(move || check(Arc::new(Notes::new(2))));
}

/// A thread that notes these, and gives its buffer back or not.
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

/// Two threads note three values each; one has ended when the collector looks last.
fn cycle(stop_and_take: fn(&Notes<At>, [JoinHandle<()>; 2]) -> Vec<At>) {
    model(move |notes| {
        notes.raise(HEAP, Box::new(|| ()));
        let threads = [thread(&notes, 1..4, false), thread(&notes, 11..14, true)];
        let mut found = notes.take(HEAP.start);
        found.extend(stop_and_take(&notes, threads));
        notes.lower(HEAP.start);
        assert_eq!(sorted(found), [1, 2, 3, 11, 12, 13]);
    });
}

fn stop(threads: [JoinHandle<()>; 2]) {
    threads.into_iter().for_each(|thread| thread.join().expect("it only notes"));
}

#[test]
fn what_is_noted_before_the_threads_stand_is_found() {
    cycle(|notes, threads| {
        stop(threads);
        notes.take(HEAP.start)
    });
}

#[test]
fn a_collector_that_does_not_look_when_the_threads_stand_is_caught() {
    must_fail(|| {
        cycle(|notes, threads| {
            let found = notes.take(HEAP.start);
            stop(threads);
            found
        });
    });
}

#[test]
fn each_heap_finds_its_own() {
    model(|notes| {
        notes.raise(HEAP, Box::new(|| ()));
        notes.raise(OTHER, Box::new(|| ()));
        let threads = [thread(&notes, 99..101, false), thread(&notes, 101..102, false)];
        let mut found = notes.take(HEAP.start);
        stop(threads);
        assert_eq!(sorted(notes.take(OTHER.start)), [100, 101]);
        found.extend(notes.take(HEAP.start));
        assert_eq!(sorted(found), [99]);
    });
}

/// A cycle is given up while a thread notes for it; what is noted may be freed before the next one begins.
fn given_up(begin_again: fn(&Notes<At>, JoinHandle<()>)) {
    model(move |notes| {
        notes.raise(HEAP, Box::new(|| ()));
        let thread = thread(&notes, 1..2, false);
        notes.lower(HEAP.start);
        begin_again(&notes, thread);
        assert!(notes.take(HEAP.start).is_empty(), "freed, and found");
    });
}

#[test]
fn nothing_that_was_noted_for_a_cycle_given_up_is_found_by_the_next() {
    given_up(|notes, thread| {
        thread.join().expect("it only notes");
        notes.raise(HEAP, Box::new(|| ()));
    });
}

#[test]
fn a_cycle_that_begins_while_threads_of_the_last_one_run_is_caught() {
    must_fail(|| {
        given_up(|notes, thread| {
            notes.raise(HEAP, Box::new(|| ()));
            thread.join().expect("it only notes");
        });
    });
}

/// A thread's last note, when it has a buffer or not any more.
fn last_note(note: fn(&Notes<At>)) {
    model(move |notes| {
        notes.raise(HEAP, Box::new(|| ()));
        let ends = {
            let notes = Arc::clone(&notes);
            spawn(move || note(&notes))
        };
        let mut found = notes.take(HEAP.start);
        ends.join().expect("it only notes");
        found.extend(notes.take(HEAP.start));
        assert_eq!(sorted(found), [1]);
    });
}

#[test]
fn a_thread_without_a_buffer_notes_all_the_same() {
    last_note(|notes| {
        notes.delist(&notes.enlist());
        notes.note_directly(At(1));
    });
}

#[test]
fn a_note_in_a_buffer_that_was_given_back_is_caught() {
    must_fail(|| {
        last_note(|notes| {
            let own = notes.enlist();
            notes.delist(&own);
            notes.note(&own, At(1));
        });
    });
}
