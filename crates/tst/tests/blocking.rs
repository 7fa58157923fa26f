//! Mutex, semaphore and readers-writer lock: one suite for every mechanism that serves all threads.
//!
//! A stress run counts only if its control lost additions in that run. The control makes the same
//! additions without a lock.
//!
//! A run of the stress counts only if its control, the same additions without a lock, was caught
//! losing some in that run.
#![expect(clippy::unwrap_used, reason = "a test")]

use core::ptr::NonNull;
use std::collections::VecDeque;

use kyocho_sys::clock::monotonic_ns;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};
use kyocho_sys::prim::thread::{scope, yield_now};
use kyocho_tst::blocking::mutex::{Mutex, RawMutex};
use kyocho_tst::blocking::rwlock::{RawRwLock, RwLock};
use kyocho_tst::blocking::semaphore::{Overflow, Semaphore, VALUE_MAX};
use kyocho_tst::{Atomics, Everywhere, Lamport, Restartable, SystemCall};

/// Number of runs that must count.
const RUNS: usize = 10;
/// Most attempts to get one run that counts.
const TRIES_MAX: usize = 200;
const THREADS: usize = 4;
const ROUNDS: usize = 5000;

/// A deadline that has passed, and one that a working test never reaches.
const PASSED_NS: u64 = 1;
fn far_ns() -> u64 {
    monotonic_ns() + 60_000_000_000
}

/// Waits until `holds`, under a watchdog.
fn until(what: &str, holds: impl Fn() -> bool) {
    let watchdog_ns = far_ns();
    while !holds() {
        assert!(monotonic_ns() < watchdog_ns, "did not happen: {what}");
        yield_now();
    }
}

/// A way to add one to a word.
type Add<'a> = &'a (dyn Fn(&AtomicUsize) + Sync);

/// Adds one with a load and a store, which a lock must make atomic. Now and then it yields between
/// the two.
fn bump(word: &AtomicUsize) {
    let before = word.load(Ordering::Relaxed);
    if before.is_multiple_of(64) {
        yield_now();
    }
    word.store(before + 1, Ordering::Relaxed);
}

/// Number of additions that are lost when several threads add.
fn lost(add: Add<'_>) -> usize {
    let word = AtomicUsize::new(0);
    scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| (0..ROUNDS).for_each(|_| add(&word)));
        }
    });
    THREADS * ROUNDS - word.load(Ordering::Relaxed)
}

/// Asserts that `add` loses nothing in ten runs in which the control lost additions.
fn nothing_is_lost(add: Add<'_>) {
    let mut runs = 0;
    for _ in 0..TRIES_MAX {
        let control = lost(&bump);
        assert_eq!(lost(add), 0);
        runs += usize::from(control > 0);
        if runs == RUNS {
            return;
        }
    }
    panic!("the control was caught in {runs} of {TRIES_MAX} runs only");
}

/// Checks the operations that locks are built on.
fn operations_are_one_step<M: Everywhere + Send + Sync>(mechanism: fn() -> M) {
    let method = mechanism();
    nothing_is_lost(&|word| {
        method.fetch_add(word, 1).unwrap();
    });
    nothing_is_lost(&|word| {
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            match method.compare_and_swap(word, seen, seen + 1).unwrap() {
                old if old == seen => return,
                old => seen = old,
            }
        }
    });
    let taken = AtomicU32::new(0);
    nothing_is_lost(&|word| {
        while method.test_and_set(&taken).unwrap() {
            yield_now();
        }
        bump(word);
        method.clear(&taken);
    });
}

fn a_mutex_excludes<M: Everywhere + Send + Sync>(mechanism: fn() -> M) {
    let mutex = Mutex::over(mechanism(), ());
    nothing_is_lost(&|word| {
        let _guard = mutex.lock();
        bump(word);
    });
    let guard = mutex.try_lock().unwrap();
    assert!(mutex.try_lock().is_none());
    assert!(mutex.lock_until(PASSED_NS).is_none());
    assert!(mutex.lock_until(monotonic_ns() + 1_000_000).is_none());
    scope(|threads| {
        let waiter = threads.spawn(|| mutex.lock_until(far_ns()).is_some());
        drop(guard);
        assert!(waiter.join().unwrap());
    });
    drop(mutex.lock_until(PASSED_NS).unwrap());
}

fn a_semaphore_counts<M: Everywhere + Send + Sync>(mechanism: fn() -> M) {
    let semaphore = Semaphore::over(mechanism(), 2);
    semaphore.acquire();
    assert!(semaphore.try_acquire() && !semaphore.try_acquire());
    assert!(!semaphore.acquire_until(PASSED_NS));
    assert!(!semaphore.acquire_until(monotonic_ns() + 1_000_000));
    assert_eq!(
        (semaphore.value(), semaphore.waiting()),
        (0, 0),
        "a thread that gave up is still counted as waiting"
    );
    scope(|threads| {
        let waiters: Vec<_> = (0..3)
            .map(|n| {
                let semaphore = &semaphore;
                threads.spawn(move || match n {
                    0 => semaphore.acquire_until(far_ns()),
                    _ => {
                        semaphore.acquire();
                        true
                    }
                })
            })
            .collect();
        until("three wait", || semaphore.waiting() == 3);
        (0..3).for_each(|_| semaphore.release().unwrap());
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
    });
    assert_eq!((semaphore.value(), semaphore.waiting()), (0, 0));
    let full = Semaphore::over(mechanism(), VALUE_MAX);
    assert_eq!(full.release(), Err(Overflow));
    assert_eq!(full.value(), VALUE_MAX);
}

/// A buffer of few slots between producers and consumers (Paper 0, figure 13).
fn nothing_is_lost_between_producers_and_consumers<M: Everywhere + Send + Sync>(
    mechanism: fn() -> M,
) {
    const SLOTS: u32 = 3;
    let (free, full) = (Semaphore::over(mechanism(), SLOTS), Semaphore::over(mechanism(), 0));
    let buffer = Mutex::over(mechanism(), VecDeque::new());
    let sum = AtomicUsize::new(0);
    let produce = |item| {
        free.acquire();
        buffer.lock().push_back(item);
        full.release().unwrap();
    };
    let consume = || {
        full.acquire();
        let item = buffer.lock().pop_front().expect("the semaphore counted an item");
        free.release().unwrap();
        sum.fetch_add(item, Ordering::Relaxed);
    };
    scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| (0..ROUNDS).for_each(produce));
            threads.spawn(|| (0..ROUNDS).for_each(|_| consume()));
        }
    });
    assert_eq!(sum.load(Ordering::Relaxed), THREADS * ROUNDS * (ROUNDS - 1) / 2);
    assert_eq!((free.value(), full.value(), buffer.lock().len()), (SLOTS, 0, 0));
}

fn a_readers_writer_lock_excludes_writers<M: Everywhere + Send + Sync>(mechanism: fn() -> M) {
    let lock = RwLock::over(mechanism(), [0_usize; 2]);
    nothing_is_lost(&|word| {
        if word.load(Ordering::Relaxed).is_multiple_of(3) {
            let pair = *lock.read();
            assert_eq!(pair[0], pair[1], "a reader saw an incomplete change");
        }
        let mut pair = lock.write();
        pair[0] += 1;
        bump(word);
        pair[1] += 1;
    });
    let readers = [lock.read(), lock.read()];
    assert!(lock.try_write().is_none());
    drop(readers);
    let writer = lock.try_write().unwrap();
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    drop(writer);
    let _reader = lock.try_read().unwrap();
}

fn waiting_writer_keeps_readers_out_until_it_gives_up<M: Everywhere + Send + Sync>(
    mechanism: fn() -> M,
) {
    let lock = RawRwLock::over(mechanism());
    assert!(lock.try_read());
    scope(|threads| {
        let writer = threads.spawn(|| assert!(lock.write_until(None)));
        until("a writer waits", || {
            let joined = lock.try_read();
            joined.then(|| lock.leave());
            !joined
        });
        let reader = threads.spawn(|| {
            assert!(lock.read_until(None));
            assert!(lock.leave());
        });
        assert!(!lock.read_until(Some(PASSED_NS)), "the reader must give up");
        assert!(lock.leave(), "the reader inside was not counted");
        until("a writer is in, or was", || writer.is_finished());
        // The reader may have been faster than the writer, but has left by now.
        assert!(lock.leave());
        reader.join().unwrap();
    });
    assert!(!lock.leave(), "no thread is inside");
    // A writer that gives up keeps no reader out.
    assert!(lock.try_read());
    assert!(!lock.write_until(Some(PASSED_NS)));
    assert!(lock.try_read());
    assert!(lock.leave() && lock.leave() && lock.try_write());
}

/// A writer gives up while a reader is about to sleep because of it. The reader must join the
/// readers inside, which stay.
fn a_writer_that_gives_up_leaves_no_reader_asleep<M: Everywhere + Send + Sync>(
    mechanism: fn() -> M,
) {
    const TIMES: usize = 200;
    let lock = RawRwLock::over(mechanism());
    assert!(lock.try_read());
    let (begun, given_up) = (AtomicUsize::new(0), AtomicUsize::new(0));
    scope(|threads| {
        threads.spawn(|| {
            for time in 1..=TIMES {
                until("the reader is there", || begun.load(Ordering::Acquire) == time);
                assert!(!lock.write_until(Some(PASSED_NS)), "a writer entered beside a reader");
                given_up.store(time, Ordering::Release);
            }
        });
        for time in 1..=TIMES {
            begun.store(time, Ordering::Release);
            let over = || given_up.load(Ordering::Acquire) == time;
            while !over() && lock.try_read() {
                assert!(lock.leave());
            }
            // Usually the writer waits now, for a short time.
            let deadline_ns = far_ns();
            assert!(lock.read_until(Some(deadline_ns)), "the reader did not enter beside readers");
            assert!(monotonic_ns() < deadline_ns, "the reader was not woken");
            assert!(lock.leave());
            until("the writer has given up", over);
        }
    });
    assert!(lock.leave() && lock.try_write());
}

/// Runs the whole suite over a mechanism.
fn serves<M: Everywhere + Send + Sync>(mechanism: fn() -> M) {
    operations_are_one_step(mechanism);
    a_mutex_excludes(mechanism);
    a_semaphore_counts(mechanism);
    nothing_is_lost_between_producers_and_consumers(mechanism);
    a_readers_writer_lock_excludes_writers(mechanism);
    waiting_writer_keeps_readers_out_until_it_gives_up(mechanism);
    a_writer_that_gives_up_leaves_no_reader_asleep(mechanism);
}

#[test]
fn locks_over_atomics_pass_the_suite() {
    serves(|| Atomics);
}

#[test]
fn locks_over_system_calls_pass_the_suite() {
    serves(SystemCall::new);
}

#[test]
fn locks_over_lamports_algorithm_pass_the_suite() {
    serves(|| Lamport::new(64));
}

#[test]
fn new_locks_are_free_and_new_semaphores_have_their_value() {
    let mutex = RawMutex::new();
    assert!(!mutex.is_locked() && mutex.try_lock() && mutex.is_locked());
    mutex.unlock();
    assert!(!mutex.is_locked());
    assert_eq!(Semaphore::new(7).value(), 7);
    let mut guarded = Mutex::new(1);
    *guarded.get_mut() += 1;
    assert_eq!(*guarded.lock(), 2);
    assert_eq!(*RwLock::new(3).read(), 3);
    assert!(RawRwLock::new().try_write());
}

/// A semaphore for a virtual processor that no thread holds.
#[expect(unsafe_code, reason = "guarantees that no other thread uses it")]
fn semaphore_of_an_unheld_virtual_processor() -> Semaphore<Restartable> {
    // SAFETY: one thread uses it.
    unsafe { Semaphore::confined(Restartable::new(NonNull::dangling()), 1) }
}

#[test]
#[should_panic(expected = "refused the calling thread: this kernel thread does not hold")]
fn confined_semaphore_panics_in_a_thread_that_its_mechanism_refuses() {
    semaphore_of_an_unheld_virtual_processor().acquire();
}
