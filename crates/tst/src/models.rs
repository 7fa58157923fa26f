//! Models, checked by loom in every order of memory accesses: two threads at a lock word, and owner
//! and visitor of a biased lock. Run with `RUSTFLAGS="--cfg loom" cargo test -p kyocho-tst
//! --release`.
#![expect(unsafe_code, reason = "a mechanism that breaks its promise, to see the model fail")]

use loom::model;
use loom::sync::Arc;
use loom::thread::spawn;

use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use crate::atomics::Atomics;
use crate::bias::{Bias, CompilerOnly, Fence};
use crate::contract::{Refusal, TestAndSet};
use crate::lock::TryLock;

/// A mutant: clears the lock word without publishing what was written under it.
struct ForgetsToRelease;

// SAFETY: none. This mechanism breaks the contract on purpose.
unsafe impl TestAndSet for ForgetsToRelease {
    const NAME: &'static str = "forgets to release";

    fn test_and_set(&self, word: &AtomicU32) -> Result<bool, Refusal> {
        Atomics.test_and_set(word)
    }

    fn clear(&self, word: &AtomicU32) {
        word.store(0, Ordering::Relaxed);
    }

    fn compare_and_swap(
        &self,
        word: &AtomicUsize,
        expected: usize,
        new: usize,
    ) -> Result<usize, Refusal> {
        Atomics.compare_and_swap(word, expected, new)
    }

    fn fetch_add(&self, word: &AtomicUsize, addend: usize) -> Result<usize, Refusal> {
        Atomics.fetch_add(word, addend)
    }
}

/// Two threads each try once to add one. The addition is a load and a store, which only the lock
/// makes atomic.
fn two_threads_add<M: TestAndSet + Send + Sync + 'static>(mechanism: fn() -> M) {
    model(move || {
        let lock = Arc::new(TryLock::new(mechanism(), ()));
        let count = Arc::new(AtomicUsize::new(0));
        let add = |lock: Arc<TryLock<M, ()>>, count: Arc<AtomicUsize>| match lock.try_lock() {
            Ok(_guard) => {
                let before = count.load(Ordering::Relaxed);
                count.store(before + 1, Ordering::Relaxed);
                1
            }
            Err(_) => 0,
        };
        let other = {
            let (lock, count) = (lock.clone(), count.clone());
            spawn(move || add(lock, count))
        };
        let added = add(lock, count.clone()) + other.join().unwrap();
        assert!(added >= 1, "no thread got the free lock");
        assert_eq!(count.load(Ordering::Relaxed), added);
    });
}

#[test]
fn no_order_loses_an_addition_under_the_lock() {
    two_threads_add(|| Atomics);
}

#[test]
#[should_panic(expected = "assertion")]
fn lock_cleared_without_release_ordering_is_caught() {
    two_threads_add(|| ForgetsToRelease);
}

/// A mutant: the processor may reorder the owner's store and load, because the visitor's barrier is
/// missing.
struct NoFence;

impl Fence for NoFence {
    fn fence() {}
}

/// The owner enters once; a visitor comes once and does not wait. Both add one with a load and a
/// store, which only the protocol makes atomic.
fn owner_and_visitor_add<F: Fence>() {
    model(|| {
        let shared = Arc::new((Bias::new(), AtomicUsize::new(0)));
        let add = |count: &AtomicUsize| {
            let before = count.load(Ordering::Relaxed);
            count.store(before + 1, Ordering::Relaxed);
            1
        };
        let visitor = {
            let shared = Arc::clone(&shared);
            spawn(move || {
                let (bias, count) = &*shared;
                bias.revoke(|| fence(Ordering::SeqCst));
                if bias.owner_is_out() { add(count) } else { 0 }
            })
        };
        let (bias, count) = &*shared;
        let by_owner = if bias.owner_enters::<F>() { add(count) } else { 0 };
        let is_visitor_told = bias.owner_leaves::<F>();
        let by_visitor = visitor.join().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), by_owner + by_visitor, "an addition is lost");
        assert!(by_visitor == 1 || is_visitor_told, "a visitor would sleep for ever");
    });
}

#[test]
fn owner_and_visitor_of_a_biased_lock_exclude_each_other() {
    owner_and_visitor_add::<CompilerOnly>();
}

#[test]
#[should_panic(expected = "addition is lost")]
fn a_bias_without_the_visitors_barrier_is_caught() {
    owner_and_visitor_add::<NoFence>();
}
