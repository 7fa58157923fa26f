//! Levels are passed along chains of waits, while microprocesses wait, release, wait elsewhere and
//! change their own levels. When all have come to rest, each has the level of its most urgent
//! waiter, and no donation of an earlier wait.

use loom::thread::spawn;

use crate::guarded::may_be_tried;
use crate::inherit::{Join, Ranked, Wait};
use crate::prim::atomic::{forget_orderings, order_loads, order_stores};
use crate::record::{MicroprocessRef, Record};
use crate::spin::without_locks;
use crate::sync::Mutex;
use crate::vp::{Masked, forget_changes};
use crate::{explore, for_ever, must_fail};

/// A microprocess that asks for `level` and runs `body`. At its end it must have the level it asked
/// for.
fn microprocess(
    level: u8,
    body: impl FnOnce() + 'static,
) -> (&'static Record, impl FnOnce() + 'static) {
    let record = Record::at(level);
    let thread = spawn(move || {
        MicroprocessRef(record).become_current();
        body();
        record.end();
    });
    let ends = move || {
        thread.join().unwrap();
        assert_eq!(record.effective_level(), level);
    };
    (record, ends)
}

/// Makes the calling thread a microprocess that asks for `level`.
fn become_one_at(level: u8) -> &'static Record {
    let me = Record::at(level);
    MicroprocessRef(me).become_current();
    me
}

/// Handles its messages, and checks the resulting level.
fn check_own(me: &'static Record, level: u8) {
    me.serve();
    assert_eq!((me.effective_level(), me.level()), (level, level));
}

/// One at 10 holds a first mutex, for which one at 40 waits. The one at 10 begins to wait for a
/// second mutex, which main holds at 5. Meanwhile it keeps the first mutex, or has just released
/// it.
fn chain_of_two(keeps_the_first: bool) {
    may_be_tried();
    explore(Some(2), move || {
        let [first, second] = [(); 2].map(|()| for_ever(Mutex::new(())));
        let me = become_one_at(5);
        let held = second.lock().unwrap();
        let (middle, middle_ends) = microprocess(10, move || {
            let outer = first.lock().unwrap();
            let outer = keeps_the_first.then_some(outer);
            drop(second.lock());
            drop(outer);
        });
        let (urgent, urgent_ends) = microprocess(40, move || drop(first.lock()));
        // The one in the middle waits for main.
        me.await_change();
        assert!(middle.await_rest());
        let waits = keeps_the_first && urgent.await_rest();
        if !keeps_the_first {
            urgent.await_end();
        }
        let expected = if waits { 40 } else { 10 };
        assert_eq!(middle.effective_level(), expected);
        check_own(me, expected);
        drop(held);
        check_own(me, 5);
        middle_ends();
        urgent_ends();
    });
}

#[test]
fn level_is_inherited_along_a_chain_that_grows_at_both_ends() {
    chain_of_two(true);
}

#[test]
fn waiter_of_a_released_lock_donates_nothing_to_a_holder_blocked_elsewhere() {
    chain_of_two(false);
}

#[test]
fn chains_without_their_locks_are_caught() {
    must_fail(|| {
        without_locks();
        chain_of_two(true);
    });
}

/// A holder at 50 asks for 10 while one at 40 begins to wait.
fn lowered_holder() {
    order_loads();
    order_stores();
    may_be_tried();
    explore(Some(3), || {
        let lock: &Mutex<()> = for_ever(Mutex::new(()));
        let me = become_one_at(50);
        let held = lock.lock().unwrap();
        let (waiter, waiter_ends) = microprocess(40, move || drop(lock.lock()));
        me.set_level(10);
        assert!(waiter.await_rest());
        check_own(me, 40);
        drop(held);
        check_own(me, 10);
        waiter_ends();
    });
}

#[test]
fn holder_that_lowers_its_level_inherits_that_of_a_new_waiter() {
    lowered_holder();
}

#[test]
fn levels_with_relaxed_orderings_are_caught() {
    must_fail(|| {
        forget_orderings();
        lowered_holder();
    });
}

#[test]
fn home_that_applies_no_level_is_caught() {
    must_fail(|| {
        forget_changes();
        lowered_holder();
    });
}

/// A duplicate of `JoinHandle::join` in `src/thread/spawn/join.rs`.
fn join(joined: &'static Record) {
    let me = MicroprocessRef::current().0;
    me.prepare_to_park(false);
    joined.completion.lock.acquire();
    joined.completion.joiner.set(Some(me));
    joined.completion.lock.release();
    let join = Join::new(joined);
    let wait = Wait { source: &join };
    let ranked = Ranked { by: &join };
    me.begin_ranked(&ranked);
    if me.effective_level() > joined.asked_level() {
        join.begin(Masked::of(me.home()), me, &wait);
    }
    me.park();
    me.end_ranked();
    join.end(Masked::of(me.home()), me);
}

/// Wakes the joiner of `me`.
fn conclude(me: &'static Record) {
    me.completion.lock.acquire();
    let joiner = me.completion.joiner.replace(None);
    me.completion.lock.release();
    joiner.expect("it joins").wake();
}

/// One at 50 asks for 10 while one at 40 begins to wait for the end of the first one.
fn lowered_while_joined() {
    order_loads();
    order_stores();
    may_be_tried();
    explore(Some(3), || {
        let me = become_one_at(50);
        let (_joiner, joiner_ends) = microprocess(40, move || join(me));
        me.set_level(10);
        while me.effective_level() != 40 {
            me.await_change();
            me.serve();
        }
        conclude(me);
        joiner_ends();
        check_own(me, 10);
    });
}

#[test]
fn microprocess_that_lowers_its_level_inherits_that_of_its_joiner() {
    lowered_while_joined();
}

#[test]
fn joined_microprocess_that_inherits_nothing_is_caught() {
    must_fail(|| {
        forget_changes();
        lowered_while_joined();
    });
}
