//! One suite for every mechanism.
#![expect(unsafe_code, reason = "pretends to hold a virtual processor; links raw nodes")]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::ptr::NonNull;

use kyocho_arch::set_current_vp;
use kyocho_sys::prim::thread::{scope, yield_now};
use kyocho_tst::{Atomics, Counter, FreeList, Link, Links, Queue, Refusal, Restartable, TryLock};

/// Names of virtual processors; nobody follows them.
fn vp(number: usize) -> NonNull<()> {
    NonNull::new(core::ptr::without_provenance_mut(number * 64)).unwrap()
}

/// Runs `body` with a virtual processor in this thread's word.
fn holding<T>(vp: NonNull<()>, body: impl FnOnce() -> T) -> T {
    // SAFETY: no other thread of these tests uses words of the same virtual processor.
    unsafe { set_current_vp(vp.as_ptr()) };
    let value = body();
    // SAFETY: as above.
    unsafe { set_current_vp(core::ptr::null_mut()) };
    value
}

fn links(count: usize) -> Vec<Link> {
    // The first `next` is garbage: no operation may follow it.
    (0..count).map(|_| Link { next: core::ptr::dangling_mut() }).collect()
}

fn a_lock_is_taken_once_until_it_is_free<M: Links>(mechanism: M) {
    let lock = TryLock::new(mechanism, 1);
    let mut guard = lock.try_lock().unwrap();
    *guard += 1;
    assert_eq!(lock.try_lock().err(), Some(Refusal::Busy));
    drop(guard);
    assert_eq!(*lock.try_lock().unwrap(), 2);
    assert_eq!(*lock.try_lock().unwrap(), 2);
}

fn a_counter_counts_and_wraps<M: Links>(mechanism: M) {
    let counter = Counter::new(mechanism);
    assert_eq!(counter.add(usize::MAX), Ok(0));
    assert_eq!(counter.add(3), Ok(usize::MAX));
    assert_eq!(counter.get(), 2);
}

/// Drives list and queue by a seed beside `Vec` and `VecDeque`.
fn lists_agree_with_the_standard_library<M: Links + Copy>(mechanism: M, seed: u64) {
    let mut nodes = links(8);
    let mut idle: Vec<NonNull<Link>> = nodes.iter_mut().map(NonNull::from).collect();
    let (list, queue) = (FreeList::new(mechanism), Queue::new(mechanism));
    let (mut stack, mut line) = (Vec::new(), std::collections::VecDeque::new());
    let mut random = seed;
    for step in 0..10_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let choice = random >> 61;
        match (choice % 4, idle.pop()) {
            (0, Some(node)) => {
                // SAFETY: the nodes outlive the test and `idle` ones are in no list; so below.
                unsafe { list.push(node) }.unwrap();
                stack.push(node);
            }
            (1, Some(node)) => {
                // SAFETY: as above.
                unsafe { queue.push(node) }.unwrap();
                line.push_back(node);
            }
            (kind, node) => {
                idle.extend(node);
                let from_list = kind.is_multiple_of(2);
                let popped = if from_list { list.pop() } else { queue.pop() }.unwrap();
                let expected = if from_list { stack.pop() } else { line.pop_front() };
                assert_eq!(popped, expected, "seed {seed}, step {step}");
                idle.extend(popped);
            }
        }
    }
}

/// The whole suite.
fn conforms<M: Links + Copy>(mechanism: M) {
    a_lock_is_taken_once_until_it_is_free(mechanism);
    a_counter_counts_and_wraps(mechanism);
    for seed in 1..=20 {
        lists_agree_with_the_standard_library(mechanism, seed);
    }
}

#[test]
fn atomics_conform() {
    conforms(Atomics);
}

#[test]
fn restartable_sequences_conform() {
    holding(vp(1), || {
        assert_eq!(Restartable::current(), Some(Restartable::new(vp(1))));
        conforms(Restartable::new(vp(1)));
    });
}

/// Every operation of a mechanism whose virtual processor this thread does not hold.
fn assert_refuses(mechanism: Restartable) {
    let lock = TryLock::new(mechanism, ());
    let counter = Counter::new(mechanism);
    let (list, queue) = (FreeList::new(mechanism), Queue::new(mechanism));
    let mut nodes = links(1);
    let node = NonNull::from(&mut nodes[0]);
    assert_eq!(lock.try_lock().err(), Some(Refusal::NotHeld));
    assert_eq!(counter.add(1), Err(Refusal::NotHeld));
    // SAFETY: the node outlives both, and is refused anyway.
    assert_eq!(unsafe { list.push(node) }, Err(Refusal::NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { queue.push(node) }, Err(Refusal::NotHeld));
    assert_eq!(list.pop(), Err(Refusal::NotHeld));
    assert_eq!(queue.pop(), Err(Refusal::NotHeld));
    assert_eq!(counter.get(), 0);
}

#[test]
fn restartable_sequences_refuse_without_their_virtual_processor() {
    assert_eq!(Restartable::current(), None);
    assert_refuses(Restartable::new(vp(2)));
    holding(vp(3), || assert_refuses(Restartable::new(vp(2))));
}

#[test]
fn a_guard_may_be_dropped_on_another_kernel_thread() {
    let lock = TryLock::new(Restartable::new(vp(4)), 7);
    holding(vp(4), || {
        let guard = lock.try_lock().unwrap();
        scope(|threads| {
            threads.spawn(|| {
                assert_eq!(lock.try_lock().err(), Some(Refusal::NotHeld));
                drop(guard);
            });
        });
        assert_eq!(*lock.try_lock().unwrap(), 7);
    });
}

const THREADS: usize = 4;
const ROUNDS: usize = 20_000;

/// Retries what may find somebody else at it.
fn until_free<T>(mut operation: impl FnMut() -> Result<T, Refusal>) -> T {
    loop {
        match operation() {
            Ok(value) => return value,
            Err(refusal) => assert_eq!(refusal, Refusal::Busy),
        }
        yield_now();
    }
}

#[test]
fn atomics_lose_nothing_between_kernel_threads() {
    let lock = TryLock::new(Atomics, 0_usize);
    let counter = Counter::new(Atomics);
    let (list, queue) = (FreeList::new(Atomics), Queue::new(Atomics));
    let mut nodes = links(THREADS);
    for node in &mut nodes {
        // SAFETY: the nodes outlive list and queue.
        unsafe { list.push(NonNull::from(node)) }.unwrap();
    }
    let round = || {
        *until_free(|| lock.try_lock()) += 1;
        counter.add(1).unwrap();
        if let Some(node) = until_free(|| list.pop()) {
            // SAFETY: popped, so in no list.
            until_free(|| unsafe { queue.push(node) });
        }
        if let Some(node) = until_free(|| queue.pop()) {
            // SAFETY: as above.
            until_free(|| unsafe { list.push(node) });
        }
    };
    scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| (0..ROUNDS).for_each(|_| round()));
        }
    });
    assert_eq!((*lock.try_lock().unwrap(), counter.get()), (THREADS * ROUNDS, THREADS * ROUNDS));
    let mut left: Vec<_> = core::iter::from_fn(|| list.pop().unwrap()).collect();
    left.extend(core::iter::from_fn(|| queue.pop().unwrap()));
    left.sort();
    left.dedup();
    assert_eq!(left.len(), THREADS, "a node was lost or listed twice");
}
