//! Models of the markers' protocol, and of the notes that threads make (`notes.rs`), in every order
//! of memory accesses (loom).
//!
//! The models run the real code of `src/heap/pool.rs` with loom's locks and atomics. A packet is a
//! number of items; processing an item may yield further ones. The models check that when the maker
//! learns that all is done, all items are done and visible to it.
//!
//! | mutant | must be caught because |
//! |---|---|
//! | a helper that finishes before it has done its packet | the maker learns too early that all is done |
//! | a packet that is taken before its taker is counted | in between no marker seems to have it |
//! | a helper that finishes first and returns its rest afterwards | in between no marker seems to have it |
//! | a maker that gives up without waiting | a helper still uses freed memory |
//!
//! `cargo test -p kyocho-heap --test models`: some seconds.
#![expect(missing_docs, reason = "replacements have the names of the originals")]

// Makes `kyocho_sys::prim` in the real code refer to the module below.
extern crate self as kyocho_sys;

/// Loom's replacements.
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

/// Items to be processed. Each has a cell that detects concurrent processing.
struct Things {
    pool: Packets,
    done: Vec<UnsafeCell<usize>>,
}

impl Things {
    fn new(count: usize, helpers_max: usize) -> Arc<Self> {
        let done = (0..count).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { pool: Pool::new(helpers_max), done })
    }

    #[expect(unsafe_code, reason = "loom detects concurrent processing")]
    fn do_it(&self, thing: usize) {
        // SAFETY: loom checks that no two accesses overlap.
        self.done[thing].with_mut(|times| unsafe { *times += 1 });
    }

    #[expect(unsafe_code, reason = "loom detects concurrent access")]
    fn times(&self, thing: usize) -> usize {
        // SAFETY: as above.
        self.done[thing].with(|times| unsafe { *times })
    }

    fn assert_done(&self) {
        for thing in 0..self.done.len() {
            assert_eq!(self.times(thing), 1, "thing {thing}");
        }
    }

    /// Processes an item. This yields the items below it, which are offered to others if they have
    /// no work.
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

/// How a helper processes a packet: correctly, or as a mutant does.
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

/// A maker, and helpers that look for work this many times.
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
        assert_eq!(found, helped, "all findings are reported");
    });
}

fn must_fail(model: impl FnOnce()) {
    let outcome = std::panic::catch_unwind(core::panic::AssertUnwindSafe(model));
    assert!(outcome.is_err(), "no order of accesses shows the defect");
}

#[test]
fn when_the_maker_learns_that_all_is_done_it_is() {
    marked(4, 1, 2, REAL);
    marked(3, 2, 1, REAL);
}

#[test]
fn a_helper_that_finishes_too_early_is_caught() {
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
fn a_packet_taken_before_its_taker_is_counted_is_caught() {
    must_fail(|| {
        marked(3, 1, 2, |things| {
            // Taken first, and counted in a second step.
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

/// A helper that is killed after one item.
const KILLED: Help = |things| {
    let Some(thing) = things.pool.take() else { return false };
    things.do_it(thing);
    things.pool.finish(thing.checked_sub(1), |found| *found += 1);
    true
};

#[test]
fn the_rest_of_a_killed_helper_is_done() {
    marked(4, 1, 2, KILLED);
    marked(3, 2, 1, KILLED);
}

#[test]
fn a_rest_returned_too_late_is_caught() {
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

/// A maker that gives up; afterwards the items may be freed.
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
        // No helper accesses it any more.
        things.do_it(0);
        let helped = helper.join().unwrap_or(false);
        assert_eq!(things.times(0), 1 + usize::from(helped));
        assert!(things.pool.wants_work(), "the next collection starts with an empty pool");
    });
}

#[test]
fn no_helper_works_after_a_collection_was_given_up() {
    given_up(Packets::give_up);
}

#[test]
fn a_maker_that_does_not_wait_for_helpers_is_caught() {
    // Takes the waiting packets itself.
    must_fail(|| given_up(|pool| while pool.take().is_some() {}));
}
