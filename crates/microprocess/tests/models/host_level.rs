//! The monitor, the new holder of a virtual processor, and the thread itself, which starts a
//! process. One at a time tells the host; the process has the normal level; and the word says what
//! the host knows.

use loom::thread::{spawn, yield_now};

use crate::prim::atomic::{Ordering, forget_orderings, order_stores};
use crate::prim::cell::Cell;
use crate::priority::Priority;
use crate::reflection::{BUSY, HostLevel, Permissions, word};
use crate::scheduling::{Attributes, set_attributes};
use crate::task::ThreadId;
use crate::{explore, for_ever, must_fail};

const LOW: u8 = 3;
const HIGH: u8 = 40;
const NORMAL: u8 = Priority::NORMAL.level();

/// How the host is informed of a thread, and how the thread starts a process.
#[derive(Clone, Copy)]
struct Way {
    inform: fn(&HostLevel, ThreadId, u8),
    while_normal: fn(&HostLevel, ThreadId, &dyn Fn()),
}

const REAL: Way = Way {
    inform: |host_level, thread, level| host_level.inform(Some(thread), level, Permissions),
    while_normal: |host_level, thread, body| host_level.while_normal(thread, Permissions, body),
};

/// What a new process sees of its thread, from the beginning to the end of the start.
fn start_a_process(thread: ThreadId) {
    assert_eq!(thread.0.get(), NORMAL);
    yield_now();
    assert_eq!(thread.0.get(), NORMAL);
}

fn monitor_new_holder_and_starter(way: Way) {
    order_stores();
    explore(Some(3), move || {
        let host_level: &HostLevel = for_ever(HostLevel::new());
        let thread = ThreadId(for_ever(Cell::new(NORMAL)));
        assert!(word(host_level).load(Ordering::Relaxed) == NORMAL && thread.0.get() == NORMAL);
        let monitor = spawn(move || (way.inform)(host_level, thread, LOW));
        let new_holder = spawn(move || (way.inform)(host_level, thread, HIGH));
        (way.while_normal)(host_level, thread, &|| start_a_process(thread));
        monitor.join().unwrap();
        new_holder.join().unwrap();
        assert_eq!(
            word(host_level).load(Ordering::Relaxed),
            thread.0.get(),
            "the word says what the host knows"
        );
    });
}

#[test]
fn one_thread_at_a_time_tells_the_host_and_a_new_process_has_normal_priority() {
    monitor_new_holder_and_starter(REAL);
}

#[test]
fn forgotten_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        monitor_new_holder_and_starter(REAL);
    });
}

fn tell_host(thread: ThreadId, level: u8) {
    set_attributes(thread, Attributes { level }).unwrap();
}

/// Mutant: ignores that another thread is telling the host.
fn informs_beside_others(host_level: &HostLevel, thread: ThreadId, level: u8) {
    word(host_level).swap(BUSY, Ordering::Acquire);
    tell_host(thread, level);
    word(host_level).store(level, Ordering::Release);
}

#[test]
fn concurrent_reporters_are_caught() {
    must_fail(|| monitor_new_holder_and_starter(Way { inform: informs_beside_others, ..REAL }));
}

/// Mutant: records the level before the host was informed.
fn records_it_before(host_level: &HostLevel, thread: ThreadId, level: u8) {
    if word(host_level).swap(BUSY, Ordering::Acquire) != BUSY {
        word(host_level).store(level, Ordering::Release);
        tell_host(thread, level);
    }
}

#[test]
fn report_before_the_fact_is_caught() {
    must_fail(|| monitor_new_holder_and_starter(Way { inform: records_it_before, ..REAL }));
}

/// Mutant: starts the process although another thread is telling the host.
fn starts_without_waiting(host_level: &HostLevel, thread: ThreadId, body: &dyn Fn()) {
    if word(host_level).swap(BUSY, Ordering::Acquire) != BUSY {
        tell_host(thread, NORMAL);
    }
    body();
    word(host_level).store(NORMAL, Ordering::Release);
}

#[test]
fn process_that_does_not_wait_for_the_reporter_is_caught() {
    must_fail(|| {
        monitor_new_holder_and_starter(Way { while_normal: starts_without_waiting, ..REAL });
    });
}

/// Mutant: the word is free again while the process is being started.
fn starts_unguarded(host_level: &HostLevel, thread: ThreadId, body: &dyn Fn()) {
    host_level.while_normal(thread, Permissions, || ());
    body();
}

#[test]
fn reports_of_others_during_the_start_of_a_process_are_caught() {
    must_fail(|| monitor_new_holder_and_starter(Way { while_normal: starts_unguarded, ..REAL }));
}
