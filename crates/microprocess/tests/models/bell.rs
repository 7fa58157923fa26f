//! A process that is about to sleep, and one that has just changed a word for which the first one
//! waits. The steps of `bell/ring.rs`, in the order in which `bell/wait.rs`, `bell/rest.rs` and a
//! gate take them. The order is duplicated here.

#[path = "../../src/processor/bell/ring.rs"]
mod real;

use loom::thread::spawn;

use crate::prim::atomic::{AtomicU32, Ordering, forget_orderings, order_loads};
use crate::{explore, for_ever, futex, must_fail};

/// What the two processes share.
struct Line {
    word: AtomicU32,
    /// 1 once the waiter has announced its bell.
    announced: AtomicU32,
    state: AtomicU32,
    counter: AtomicU32,
}

impl Line {
    fn new() -> &'static Self {
        let word = || AtomicU32::new(0);
        let line = Self { word: word(), announced: word(), state: word(), counter: word() };
        for word in [&line.word, &line.announced, &line.state, &line.counter] {
            word.load(Ordering::Relaxed);
        }
        for_ever(line)
    }

    fn has_changed(&self) -> bool {
        self.word.load(Ordering::SeqCst) != 0
    }

    /// Waits; `rest` sleeps at most once.
    fn wait(&self, rest: fn(&Self)) {
        self.announced.swap(1, Ordering::SeqCst);
        while !self.has_changed() {
            rest(self);
        }
    }

    fn rest(&self) {
        let count = real::count(&self.counter);
        real::publish_parked(&self.state);
        if !self.has_changed() {
            futex::wait_shared(&self.counter, count, None);
        }
        real::publish_awake(&self.state);
    }

    fn change(&self) {
        self.word.swap(1, Ordering::SeqCst);
        self.ring();
    }

    fn ring(&self) {
        if self.announced.load(Ordering::SeqCst) != 0 {
            real::ring_if_parked(&self.state, &self.counter);
        }
    }
}

/// One thread waits, one changes the word, and one wakes the waiter for another reason.
fn wait_and_change(rest: fn(&Line), change: fn(&Line)) {
    order_loads();
    explore(Some(3), move || {
        let line = Line::new();
        let changes = spawn(move || change(line));
        let rings = spawn(|| line.ring());
        line.wait(rest);
        changes.join().unwrap();
        rings.join().unwrap();
    });
}

#[test]
fn no_wake_is_lost() {
    wait_and_change(Line::rest, Line::change);
}

#[test]
fn forgotten_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        wait_and_change(Line::rest, Line::change);
    });
}

/// Mutant: reads the word for the last time, and only then publishes that it is parked.
fn rest_published_too_late(line: &Line) {
    let count = real::count(&line.counter);
    if !line.has_changed() {
        real::publish_parked(&line.state);
        futex::wait_shared(&line.counter, count, None);
    }
    real::publish_awake(&line.state);
}

#[test]
fn last_check_before_parked_is_published_is_caught() {
    must_fail(|| wait_and_change(rest_published_too_late, Line::change));
}

/// Mutant: reads the counter after the last read of the word, so a ring in between does not end the
/// sleep.
fn rest_counted_too_late(line: &Line) {
    real::publish_parked(&line.state);
    if !line.has_changed() {
        futex::wait_shared(&line.counter, real::count(&line.counter), None);
    }
    real::publish_awake(&line.state);
}

#[test]
fn count_after_the_last_check_is_caught() {
    must_fail(|| wait_and_change(rest_counted_too_late, Line::change));
}

/// Mutant: checks first whether to wake the waiter, and changes the word only then.
fn changed_too_late(line: &Line) {
    let parked = real::is_parked(&line.state);
    line.word.swap(1, Ordering::SeqCst);
    if parked {
        real::ring(&line.counter);
    }
}

#[test]
fn check_before_the_change_is_caught() {
    must_fail(|| wait_and_change(Line::rest, changed_too_late));
}
