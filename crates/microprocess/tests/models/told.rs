//! The monitor, the new holder of a virtual processor, and the thread itself, which starts a
//! process. One at a time tells the host; the process has the normal level; and the word says what
//! the host knows.

use loom::thread::{spawn, yield_now};

use crate::prim::atomic::{Ordering, forget_orderings, order_stores};
use crate::prim::cell::Cell;
use crate::priority::Priority;
use crate::reflection::{BUSY, Means, Told, word};
use crate::scheduling::{Attributes, set_attributes};
use crate::task::ThreadId;
use crate::{explore, for_ever, must_fail};

const LOW: u8 = 3;
const HIGH: u8 = 40;
const NORMAL: u8 = Priority::NORMAL.level();

/// How the host is told of a thread, and how the thread starts a process.
#[derive(Clone, Copy)]
struct Way {
    tell: fn(&Told, ThreadId, u8),
    while_normal: fn(&Told, ThreadId, &dyn Fn()),
}

const REAL: Way = Way {
    tell: |told, thread, level| told.tell(Some(thread), level, Means),
    while_normal: |told, thread, body| told.while_normal(thread, Means, body),
};

/// What a new process sees of its thread, from the beginning to the end of the start.
fn start_a_process(thread: ThreadId) {
    assert_eq!(thread.0.get(), NORMAL);
    yield_now();
    assert_eq!(thread.0.get(), NORMAL);
}

fn monitor_heir_and_starter(way: Way) {
    order_stores();
    explore(Some(3), move || {
        let told: &Told = for_ever(Told::new());
        let thread = ThreadId(for_ever(Cell::new(NORMAL)));
        assert!(word(told).load(Ordering::Relaxed) == NORMAL && thread.0.get() == NORMAL);
        let monitor = spawn(move || (way.tell)(told, thread, LOW));
        let heir = spawn(move || (way.tell)(told, thread, HIGH));
        (way.while_normal)(told, thread, &|| start_a_process(thread));
        monitor.join().unwrap();
        heir.join().unwrap();
        assert_eq!(
            word(told).load(Ordering::Relaxed),
            thread.0.get(),
            "the word says what the host knows"
        );
    });
}

#[test]
fn one_thread_at_a_time_tells_the_host_and_a_new_process_has_normal_priority() {
    monitor_heir_and_starter(REAL);
}

#[test]
fn forgotten_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        monitor_heir_and_starter(REAL);
    });
}

fn tell_host(thread: ThreadId, level: u8) {
    set_attributes(thread, Attributes { level }).unwrap();
}

/// Mutant: ignores that another thread is telling the host.
fn tells_beside_others(told: &Told, thread: ThreadId, level: u8) {
    word(told).swap(BUSY, Ordering::Acquire);
    tell_host(thread, level);
    word(told).store(level, Ordering::Release);
}

#[test]
fn concurrent_reporters_are_caught() {
    must_fail(|| monitor_heir_and_starter(Way { tell: tells_beside_others, ..REAL }));
}

/// Mutant: records the level before the host was told.
fn says_it_before(told: &Told, thread: ThreadId, level: u8) {
    if word(told).swap(BUSY, Ordering::Acquire) != BUSY {
        word(told).store(level, Ordering::Release);
        tell_host(thread, level);
    }
}

#[test]
fn report_before_the_fact_is_caught() {
    must_fail(|| monitor_heir_and_starter(Way { tell: says_it_before, ..REAL }));
}

/// Mutant: starts the process although another thread is telling the host.
fn starts_without_waiting(told: &Told, thread: ThreadId, body: &dyn Fn()) {
    if word(told).swap(BUSY, Ordering::Acquire) != BUSY {
        tell_host(thread, NORMAL);
    }
    body();
    word(told).store(NORMAL, Ordering::Release);
}

#[test]
fn process_that_does_not_wait_for_the_reporter_is_caught() {
    must_fail(|| monitor_heir_and_starter(Way { while_normal: starts_without_waiting, ..REAL }));
}

/// Mutant: the word is free again while the process is being started.
fn starts_unguarded(told: &Told, thread: ThreadId, body: &dyn Fn()) {
    told.while_normal(thread, Means, || ());
    body();
}

#[test]
fn reports_of_others_during_the_start_of_a_process_are_caught() {
    must_fail(|| monitor_heir_and_starter(Way { while_normal: starts_unguarded, ..REAL }));
}
