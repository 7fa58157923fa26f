//! A microprocess may unlock and lock again before the waiter that it woke. But not for ever, and
//! not before a more urgent waiter; and no waiter is forgotten. One test suite for all locks with
//! an owner.

use core::ops::DerefMut;
use core::time::Duration;
use std::sync::Arc;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::clock::{Instant, monotonic_ns};

use super::super::raw_mutex::PATIENCE_NS;
use super::super::{MutexGuard, RwLockWriteGuard};
use super::{Mutex, NEVER, RwLock, SOON, on_processors};
use crate::{Builder, Microprocess, Priority, scope, spawn, statistics, yield_now};

/// A lock with an owner, around a number.
trait Exclusive: Default + Send + Sync + 'static {
    type Guard<'a>: DerefMut<Target = usize>;

    fn lock(&self) -> Self::Guard<'_>;
    fn try_lock(&self) -> Option<Self::Guard<'_>>;
    fn lock_timeout(&self, timeout: Duration) -> Option<Self::Guard<'_>>;
}

impl Exclusive for Mutex<usize> {
    type Guard<'a> = MutexGuard<'a, usize>;

    fn lock(&self) -> Self::Guard<'_> {
        self.lock().unwrap()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock().ok()
    }

    fn lock_timeout(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.lock_timeout(timeout).ok()
    }
}

impl Exclusive for RwLock<usize> {
    type Guard<'a> = RwLockWriteGuard<'a, usize>;

    fn lock(&self) -> Self::Guard<'_> {
        self.write().unwrap()
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_write().ok()
    }

    fn lock_timeout(&self, timeout: Duration) -> Option<Self::Guard<'_>> {
        self.write_timeout(timeout).ok()
    }
}

macro_rules! for_each_lock {
    ($($test:ident)*) => {
        mod mutex {
            $(#[test]
            fn $test() {
                super::$test::<super::Mutex<usize>>();
            })*
        }

        mod rwlock {
            $(#[test]
            fn $test() {
                super::$test::<super::RwLock<usize>>();
            })*
        }
    };
}

for_each_lock! {
    equals_overtake_a_waiter_until_its_patience_ends
    convoy_dissolves
    more_urgent_waiter_is_not_overtaken
    free_lock_with_waiters_is_taken
}

fn equals_overtake_a_waiter_until_its_patience_ends<L: Exclusive>() {
    on_processors(1, || {
        let lock = L::default();
        scope(|scope| {
            let held = lock.lock();
            let waiter = scope.spawn(|| *lock.lock() += 1);
            yield_now();
            drop(held);
            let first_ns = monotonic_ns();
            let mut passed_over = 0;
            while let Some(held) = lock.try_lock() {
                passed_over += 1;
                // The waiter finds the lock taken, and waits again.
                yield_now();
                assert_eq!(*held, 0);
            }
            assert!(passed_over > 1 || monotonic_ns() - first_ns > PATIENCE_NS);
            waiter.join().unwrap();
            assert_eq!(*lock.lock(), 1);
        });
    });
}

/// Some waiters are to be handed the lock; others were woken to take it. That state must not last
/// for ever, at one switch for each lock.
fn convoy_dissolves<L: Exclusive>() {
    const THREADS: usize = 16;
    const ROUNDS: usize = 20_000;
    on_processors(1, || {
        let lock = L::default();
        let before = statistics().switches;
        scope(|scope| {
            let mut held = lock.lock();
            for _ in 0..THREADS {
                scope.spawn(|| (0..ROUNDS).for_each(|_| *lock.lock() += 1));
            }
            for _ in 0..THREADS / 2 {
                // One waiter was woken and finds the lock taken; the others wait for the first
                // time.
                yield_now();
                drop(held);
                held = lock.lock();
            }
        });
        assert_eq!(*lock.lock(), THREADS * ROUNDS);
        let switches = statistics().switches - before;
        assert!(switches < (THREADS * ROUNDS / 2) as u64, "{switches} switches");
    });
}

fn more_urgent_waiter_is_not_overtaken<L: Exclusive>() {
    on_processors(2, || {
        let (lock, got) = (L::default(), AtomicBool::new(false));
        let me = Microprocess::current();
        me.set_virtual_processor(Some(0));
        scope(|scope| {
            let held = lock.lock();
            let urgent = Builder::new().priority(Priority::HIGHEST).virtual_processor(1);
            let body = || {
                let _held = lock.lock();
                got.store(true, Ordering::SeqCst);
            };
            let waiter = scope.spawn_with(urgent, body).unwrap();
            // It waits once this microprocess has its priority.
            while me.effective_priority() != Priority::HIGHEST {
                yield_now();
            }
            drop(held);
            let mine = lock.try_lock();
            assert!(mine.is_none() || got.load(Ordering::SeqCst), "it was handed over");
            drop(mine);
            waiter.join().unwrap();
        });
    });
}

/// The first waiter was woken to take the lock. Before it tries, it is killed or its time limit
/// passes. It must then get the lock or give up, and the waiter behind it gets the lock.
fn free_lock_with_waiters_is_taken<L: Exclusive>() {
    for killed in [false, true] {
        on_processors(1, || {
            let lock = Arc::new(L::default());
            let held = lock.lock();
            let add = |lock: &Arc<L>, timeout: Duration| {
                let lock = Arc::clone(lock);
                spawn(move || lock.lock_timeout(timeout).map(|mut sum| *sum += 1).is_some())
            };
            let (first, second) = (add(&lock, SOON), add(&lock, NEVER));
            yield_now();
            drop(held);
            if killed {
                first.microprocess().kill().unwrap();
            }
            // No other microprocess runs meanwhile.
            let begin = Instant::now();
            while begin.elapsed() < 2 * SOON {}
            // If the kill comes late, it adds first.
            let added = first.join().is_ok_and(|added| added);
            assert!(added || killed);
            assert!(second.join().unwrap());
            assert_eq!(*lock.lock(), 1 + usize::from(added));
        });
    }
}

/// Readers that wait together enter together. A reader enters in the end although writers overtake
/// it all the time.
#[test]
fn readers_enter_in_the_end_among_writers() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let (lock, stop) = (RwLock::new(0_usize), AtomicBool::new(false));
            scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while !stop.load(Ordering::Relaxed) {
                            *lock.write().unwrap() += 1;
                        }
                    });
                }
                let readers: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| (0..20).map(|_| *lock.read().unwrap()).max()))
                    .collect();
                readers.into_iter().for_each(|reader| assert!(reader.join().unwrap() >= Some(0)));
                stop.store(true, Ordering::Relaxed);
            });
        });
    }
}
