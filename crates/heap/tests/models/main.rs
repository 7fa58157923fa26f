//! The markers' protocol, and that of what threads note (`notes.rs`), in every order of memory accesses (loom).
//!
//! What runs is the real code of `src/heap/pool.rs`, against locks and words behind which loom stands. A packet is a number of things to do;
//! whoever does one may find more. What is looked at is that, when the maker is told that all is done, all is done and seen by him.
//!
//! | mutant | must be caught because |
//! |---|---|
//! | a helper that is finished before it has done what it took | the maker is told too early |
//! | a packet that is taken before its taker is counted | in between nobody seems to have it |
//! | a helper that finishes first and gives its rest back after | in between nobody seems to have it |
//! | a maker that gives up without waiting | a helper is at what is gone |
//!
//! `cargo test -p kyocho-heap --test models`: some seconds.
#![expect(missing_docs, reason = "what stands in is named as what it stands for")]

// So that `kyocho_sys::prim` in the real code means what stands here.
extern crate self as kyocho_sys;

/// Loom's.
pub mod prim {
    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    }

    pub mod sync {
        pub use loom::sync::{Condvar, Mutex, MutexGuard};
        pub use std::sync::PoisonError;
    }
}

mod notes;
#[path = "../../src/heap/pool.rs"]
mod pool;

use core::time::Duration;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread::spawn;
use pool::{Next, Pool};

type Packets = Pool<usize, usize>;

/// What there is to do; a cell a thing, which two may not do at a time.
struct Things {
    pool: Packets,
    done: Vec<UnsafeCell<usize>>,
}

impl Things {
    fn new(count: usize, helpers_max: usize) -> Arc<Self> {
        let done = (0..count).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { pool: Pool::new(helpers_max), done })
    }

    #[expect(unsafe_code, reason = "loom sees who does it at a time")]
    fn do_it(&self, thing: usize) {
        // SAFETY: what the models are to find out.
        self.done[thing].with_mut(|times| unsafe { *times += 1 });
    }

    #[expect(unsafe_code, reason = "loom sees who looks at a time")]
    fn times(&self, thing: usize) -> usize {
        // SAFETY: as above.
        self.done[thing].with(|times| unsafe { *times })
    }

    fn assert_done(&self) {
        for thing in 0..self.done.len() {
            assert_eq!(self.times(thing), 1, "thing {thing}");
        }
    }

    /// Does a thing; the ones below it are found by that, and left to others where somebody wants them.
    fn go(&self, thing: usize) {
        let mut next = Some(thing);
        while let Some(thing) = next {
            self.do_it(thing);
            next = thing.checked_sub(1);
            if let Some(found) = next
                && self.pool.wants_work()
                && self.pool.give(found).is_ok()
            {
                next = None;
            }
        }
    }
}

/// How a helper does a packet: the real way, or a mutant's.
type Help = fn(&Things) -> bool;

const REAL: Help = |things| {
    let Some(thing) = things.pool.take() else { return false };
    things.go(thing);
    things.pool.finish(None, |found| *found += 1);
    true
};

fn make(things: &Things, thing: usize) -> usize {
    things.go(thing);
    loop {
        match things.pool.next_or_done(Duration::ZERO) {
            Next::Work(thing) => things.go(thing),
            Next::Done(found) => return found,
            Next::NotYet => {}
        }
    }
}

/// A maker, and helpers that look for work so often.
fn marked(count: usize, helpers: usize, looks: usize, help: Help) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let things = Things::new(count, helpers);
        let threads: Vec<_> = (0..helpers)
            .map(|_| {
                let things = Arc::clone(&things);
                spawn(move || (0..looks).filter(|_| help(&things)).count())
            })
            .collect();
        let found = make(&things, count - 1);
        things.assert_done();
        let helped: usize = threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum();
        assert_eq!(found, helped, "all that was found is told");
    });
}

fn must_fail(model: impl FnOnce()) {
    let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(model));
    assert!(outcome.is_err(), "no order shows that it is broken");
}

#[test]
fn when_the_maker_is_told_so_all_is_done() {
    marked(4, 1, 2, REAL);
    marked(3, 2, 1, REAL);
}

#[test]
fn a_helper_that_is_finished_too_early_is_caught() {
    must_fail(|| {
        marked(3, 1, 2, |things| {
            let Some(thing) = things.pool.take() else { return false };
            things.pool.finish(None, |found| *found += 1);
            things.go(thing);
            true
        });
    });
}

#[test]
fn a_packet_that_nobody_seems_to_have_is_caught() {
    must_fail(|| {
        marked(3, 1, 2, |things| {
            // Taken, and counted in a step of its own.
            let Some(thing) = things.pool.take() else { return false };
            things.pool.finish(None, |_| ());
            let _again = things.pool.give(thing);
            things.pool.take().is_some_and(|thing| {
                things.go(thing);
                things.pool.finish(None, |found| *found += 1);
                true
            })
        });
    });
}

/// One that is killed after it has done one thing.
const KILLED: Help = |things| {
    let Some(thing) = things.pool.take() else { return false };
    things.do_it(thing);
    things.pool.finish(thing.checked_sub(1), |found| *found += 1);
    true
};

#[test]
fn what_a_killed_helper_leaves_is_done() {
    marked(4, 1, 2, KILLED);
    marked(3, 2, 1, KILLED);
}

#[test]
fn a_rest_that_is_given_back_too_late_is_caught() {
    must_fail(|| {
        marked(4, 1, 2, |things| {
            let Some(thing) = things.pool.take() else { return false };
            things.do_it(thing);
            things.pool.finish(None, |found| *found += 1);
            if let Some(rest) = thing.checked_sub(1) {
                let _kept = things.pool.give(rest);
            }
            true
        });
    });
}

/// A maker that gives up; what it is about is gone then.
fn given_up(give_up: fn(&Packets)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let things = Things::new(2, 1);
        let helper = {
            let things = Arc::clone(&things);
            spawn(move || REAL(&things))
        };
        let _given = things.pool.give(0);
        give_up(&things.pool);
        assert!(!things.pool.has_packets());
        // Nobody else touches it any more.
        things.do_it(0);
        let helped = helper.join().unwrap_or(false);
        assert_eq!(things.times(0), 1 + usize::from(helped));
        assert!(things.pool.wants_work(), "the next one begins anew");
    });
}

#[test]
fn nobody_is_at_what_was_given_up() {
    given_up(Packets::give_up);
}

#[test]
fn a_maker_that_does_not_wait_for_helpers_is_caught() {
    // Takes the packets that are there, as its own.
    must_fail(|| given_up(|pool| while pool.take().is_some() {}));
}
