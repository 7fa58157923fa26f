//! Waiting and waking.

use super::{Wait, try_take, wait, wait_shared, wake, wake_shared};
use crate::clock::monotonic_ns;
use crate::prim::atomic::{AtomicU32, Ordering};
use crate::prim::thread::scope;
use crate::task::{State, StateReader, ThreadId};

#[test]
fn wait_returns_at_once_when_the_word_differs() {
    assert_eq!(wait(&AtomicU32::new(1), 0, None), Wait::Changed);
}

#[test]
fn wait_ends_at_its_deadline() {
    let deadline_ns = monotonic_ns() + 2_000_000;
    assert_eq!(wait(&AtomicU32::new(0), 0, Some(deadline_ns)), Wait::TimedOut);
    assert!(monotonic_ns() >= deadline_ns, "woke early");
    assert_eq!(wait(&AtomicU32::new(0), 0, Some(1)), Wait::TimedOut, "a deadline long past");
}

#[test]
fn wake_ends_the_sleep_of_a_thread_that_really_slept() {
    let word = AtomicU32::new(0);
    let sleeper = AtomicU32::new(0);
    scope(|threads| {
        let waiting = threads.spawn(|| {
            sleeper.store(ThreadId::current().number(), Ordering::Release);
            wait(&word, 0, None)
        });
        while sleeper.load(Ordering::Acquire) == 0 {
            core::hint::spin_loop();
        }
        let thread = ThreadId::new(sleeper.load(Ordering::Acquire));
        let state = StateReader::open(thread).unwrap();
        while state.read() != Ok(State::Sleeping) {
            core::hint::spin_loop();
        }
        // Only a counted wake proves that the thread was waiting: it may have slept for another
        // reason before.
        while wake(&word, 1) == 0 {
            core::hint::spin_loop();
        }
        assert_eq!(waiting.join().unwrap(), Wait::Woken);
    });
    assert_eq!(wake(&word, u32::MAX), 0, "a thread still waits");
}

#[test]
fn word_is_taken_once_until_it_is_freed() {
    let word = AtomicU32::new(0);
    assert!(try_take(&word));
    assert!(!try_take(&word), "taken twice by one thread");
    scope(|threads| {
        threads.spawn(|| assert!(!try_take(&word), "taken by another thread, too"));
    });
    word.store(0, Ordering::Release);
    scope(|threads| {
        threads.spawn(|| assert!(try_take(&word), "storing 0 must free it after a failed attempt"));
    });
    assert!(!try_take(&word), "taken by a thread that has ended");
}

#[test]
fn a_shared_wake_reaches_a_shared_wait_and_no_private_one() {
    let word = AtomicU32::new(0);
    scope(|threads| {
        let waiting = threads.spawn(|| wait_shared(&word, 0, None));
        while wake_shared(&word, 1) == 0 {
            assert_eq!(wake(&word, 1), 0);
        }
        assert_eq!(waiting.join().unwrap(), Wait::Woken);
    });
}
