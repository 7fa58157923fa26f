//! A biased lock under stress. Owner and visitors add with a load and a store.

use kyocho_sys::clock::monotonic_ns;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicUsize, Ordering};
use kyocho_sys::prim::thread::{scope, yield_now};
use kyocho_tst::biased::{Owner, REBIAS_AFTER, Visitor, biased};

/// Number of runs in which the control must be caught.
const RUNS: usize = 10;
const TRIES_MAX: usize = 200;
/// Visits in one run. Each may revoke the bias.
const VISITS: usize = 50;

/// Adds one with a load and a store, which only a lock makes atomic. Now and then it yields between
/// the two.
fn bump(word: &AtomicUsize) {
    let before = word.load(Ordering::Relaxed);
    if before.is_multiple_of(64) {
        yield_now();
    }
    word.store(before + 1, Ordering::Relaxed);
}

/// The owner adds until two visitors have added. Returns the number of lost additions.
fn lost(
    by_owner: &mut (dyn FnMut(&AtomicUsize) + Send),
    by_visitor: &(dyn Fn(&AtomicUsize) + Sync),
) -> usize {
    let (word, left) = (AtomicUsize::new(0), AtomicUsize::new(2));
    let owned = AtomicUsize::new(0);
    let visit = || {
        by_visitor(&word);
        wait_for_turns(&owned);
    };
    scope(|threads| {
        threads.spawn(|| {
            while left.load(Ordering::Acquire) > 0 {
                by_owner(&word);
                owned.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..2 {
            threads.spawn(|| {
                (0..VISITS).for_each(|_| visit());
                left.fetch_sub(1, Ordering::Release);
            });
        }
    });
    owned.into_inner() + 2 * VISITS - word.into_inner()
}

/// Waits until the owner has taken the lock often enough to restore the bias, so that the next
/// visit revokes it again.
fn wait_for_turns(owned: &AtomicUsize) {
    let enough = owned.load(Ordering::Relaxed) + 2 * REBIAS_AFTER as usize;
    let watchdog_ns = monotonic_ns() + 60_000_000_000;
    while owned.load(Ordering::Relaxed) < enough {
        assert!(monotonic_ns() < watchdog_ns, "the owner makes no progress");
        yield_now();
    }
}

#[test]
fn nothing_is_lost_between_owner_and_visitors() {
    let mut runs = 0;
    for _ in 0..TRIES_MAX {
        let control = lost(&mut bump, &bump);
        let (mut owner, visitor) = biased(());
        let mut by_owner = |word: &AtomicUsize| {
            let _guard = owner.lock();
            bump(word);
        };
        let by_visitor = |word: &AtomicUsize| {
            let _guard = visitor.lock();
            bump(word);
        };
        assert_eq!(lost(&mut by_owner, &by_visitor), 0);
        runs += usize::from(control > 0);
        if runs == RUNS {
            return;
        }
    }
    panic!("the control was caught in {runs} of {TRIES_MAX} runs only");
}

#[test]
fn a_visit_takes_the_bias_and_enough_turns_bring_it_back() {
    let (mut owner, visitor) = biased(0);
    assert!(owner.is_biased());
    *visitor.lock() += 1;
    for turn in 0..REBIAS_AFTER {
        assert!(!owner.is_biased(), "turn {turn}");
    }
    assert!(owner.is_biased());
    *visitor.lock() += 1;
    assert!(!owner.is_biased());
    *visitor.lock() += 1;
    for _ in 0..REBIAS_AFTER {
        *owner.lock() += 1;
    }
    assert!(owner.is_biased(), "counted from the last visit");
    assert_eq!(*owner.lock(), 3 + REBIAS_AFTER);
}

#[test]
fn a_visitor_sleeps_until_the_owner_leaves() {
    let (mut owner, visitor) = biased(1);
    let came = AtomicBool::new(false);
    scope(|threads| {
        let mut guard = owner.lock();
        let waiter = threads.spawn(|| {
            came.store(true, Ordering::Release);
            *visitor.lock()
        });
        while !came.load(Ordering::Acquire) {
            yield_now();
        }
        *guard = 5;
        drop(guard);
        assert_eq!(waiter.join().unwrap(), 5);
    });
}

#[test]
fn a_visitor_outlives_the_owner() {
    let (owner, visitor): (Owner<u32>, Visitor<u32>) = biased(1);
    let other = visitor.clone();
    drop(owner);
    *other.lock() += 1;
    assert_eq!(*visitor.lock(), 2);
}
