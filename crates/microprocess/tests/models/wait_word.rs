//! A waiting thread receives a virtual processor; a thread with a virtual processor ends its
//! idling; and both at once.

#[path = "../../src/protocol/wait_word.rs"]
mod real;

use loom::cell::UnsafeCell;
use loom::thread::spawn;

use crate::claim::Hold;
use crate::prim::atomic::{AtomicU32, Ordering, forget_orderings, order_stores};
use crate::{explore, for_ever, futex, must_fail};
pub(crate) use real::WaitWord;

/// A thread that waits for a virtual processor. The virtual processor is a cell that its holder may
/// read.
struct Waiter {
    wait_word: WaitWord,
    hold: Hold<UnsafeCell<u32>>,
    processor: &'static UnsafeCell<u32>,
}

impl Waiter {
    fn new() -> &'static Self {
        let processor = for_ever(UnsafeCell::new(0));
        let waiter =
            Self { wait_word: WaitWord::new(), hold: Hold::new(core::ptr::null_mut()), processor };
        waiter.wait_word.renew();
        waiter.hold.renew();
        for_ever(waiter)
    }

    fn give(&self) {
        // SAFETY: no thread holds it yet.
        self.processor.with_mut(|content| unsafe { *content = 7 });
        self.hold.set(self.processor);
        self.wait_word.run();
    }

    fn wait(&self) -> Option<u32> {
        self.wait_for(Hold::settle_claim)
    }

    fn wait_for<'a>(
        &'a self,
        look: fn(&'a Hold<UnsafeCell<u32>>) -> Option<&'static UnsafeCell<u32>>,
    ) -> Option<u32> {
        let processor = self.wait_word.wait(|| look(&self.hold))?;
        // SAFETY: the model checks it.
        Some(processor.with(|content| unsafe { *content }))
    }
}

/// One thread waits, one gives, and one rouses the waiter as if it idled.
fn given_and_roused(wait: fn(&Waiter) -> Option<u32>) {
    order_stores();
    explore(Some(3), move || {
        let waiter = Waiter::new();
        let giver = spawn(move || waiter.give());
        let rouser = spawn(move || waiter.wait_word.rouse());
        assert_eq!(wait(waiter), Some(7));
        giver.join().unwrap();
        rouser.join().unwrap();
    });
}

#[test]
fn passed_value_arrives_with_all_writes_before_it() {
    given_and_roused(Waiter::wait);
}

#[test]
fn passing_with_relaxed_orderings_is_caught() {
    must_fail(|| {
        forget_orderings();
        given_and_roused(Waiter::wait);
    });
}

/// Mutant: a thread that was roused, before it was given anything, checks without acquiring what it
/// then finds.
#[test]
fn check_without_acquire_is_caught() {
    must_fail(|| given_and_roused(|waiter| waiter.wait_for(Hold::held)));
}

#[test]
fn idle_holder_is_woken_once_or_before_it_sleeps() {
    explore(None, || {
        let waiter = Waiter::new();
        let rouser = spawn(move || waiter.wait_word.rouse());
        assert!(waiter.wait_word.idle(None));
        rouser.join().unwrap();
    });
}

#[test]
fn an_exit_is_not_missed_behind_a_late_rouse() {
    order_stores();
    explore(Some(3), || {
        let waiter = Waiter::new();
        let rouser = spawn(move || waiter.wait_word.rouse());
        let dismisser = spawn(move || waiter.wait_word.exit());
        assert_eq!(waiter.wait(), None);
        rouser.join().unwrap();
        dismisser.join().unwrap();
    });
}

/// Mutant: checks once and sleeps, whatever the word says by then.
fn waits_blindly(word: &AtomicU32) {
    if word.load(Ordering::Acquire) == 0 {
        futex::wait(word, word.load(Ordering::Relaxed), None);
    }
}

#[test]
fn a_wait_that_does_not_compare_is_caught() {
    must_fail(|| {
        explore(None, || {
            let word: &AtomicU32 = for_ever(AtomicU32::new(0));
            word.load(Ordering::Relaxed);
            let waker = spawn(move || {
                word.store(1, Ordering::Release);
                futex::wake(word, 1);
            });
            waits_blindly(word);
            waker.join().unwrap();
        });
    });
}
