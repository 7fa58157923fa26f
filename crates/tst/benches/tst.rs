//! What do the same operations cost without atomic instructions, against atomics in the same run?
//! (Paper 0, figure 12; there against `di/ei`, Lamport's algorithm and a system call.)
//!
//! Unit: ns. Repeats: 31 of a million each; median, 10th and 90th percentile.
#![expect(unsafe_code, reason = "pretends to hold a virtual processor")]
#![expect(clippy::print_stdout, reason = "a bench prints what it timed")]

use core::hint::black_box;
use core::ptr::NonNull;

use kyocho_sys::clock::monotonic_ns;
use kyocho_sys::scheduling::yield_to_host;
use kyocho_tst::{Atomics, Counter, FreeList, Link, Links, Queue, Restartable, TryLock};

const REPEATS: usize = 31;
const ROUNDS: u64 = 1_000_000;

/// Median time of one `operation`, printed with its spread.
fn report(what: &str, mechanism: &str, rounds: u64, mut operation: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start_ns = monotonic_ns();
            (0..rounds).for_each(|_| operation());
            (monotonic_ns() - start_ns) as f64 / rounds as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let [low, median, high] = [REPEATS / 10, REPEATS / 2, REPEATS * 9 / 10].map(|i| times[i]);
    println!("{what:<20} {mechanism:<12} {median:7.2} ns  [{low:.2}..{high:.2}]");
    median
}

/// Times of lock, counter, free list and queue over one mechanism.
fn measure<M: Links + Copy>(mechanism: M) -> [f64; 4] {
    let lock = TryLock::new(mechanism, 0_u64);
    let counter = Counter::new(mechanism);
    let (list, queue) = (FreeList::new(mechanism), Queue::new(mechanism));
    let mut links = [const { Link { next: core::ptr::null_mut() } }; 2];
    let [listed, queued] = links.each_mut().map(NonNull::from);
    // SAFETY: the links outlive list and queue; so below.
    unsafe { list.push(listed) }.expect("nobody else is here");
    // SAFETY: as above.
    unsafe { queue.push(queued) }.expect("nobody else is here");
    let times = [
        report("try_lock + unlock", M::NAME, ROUNDS, || {
            *lock.try_lock().expect("nobody else is here") += 1;
        }),
        report("counter add", M::NAME, ROUNDS, || {
            black_box(counter.add(1)).expect("nobody else is here");
        }),
        report("free list pop + push", M::NAME, ROUNDS, || {
            let node = list.pop().expect("nobody else is here").expect("one link goes round");
            // SAFETY: as above.
            unsafe { list.push(node) }.expect("nobody else is here");
        }),
        report("queue pop + push", M::NAME, ROUNDS, || {
            let node = queue.pop().expect("nobody else is here").expect("one link goes round");
            // SAFETY: as above.
            unsafe { queue.push(node) }.expect("nobody else is here");
        }),
    ];
    let mut lock = lock;
    assert_eq!(*lock.get_mut(), REPEATS as u64 * ROUNDS);
    assert_eq!(counter.get() as u64, REPEATS as u64 * ROUNDS);
    times
}

fn main() {
    let vp = NonNull::dangling();
    // SAFETY: this thread alone uses the words below.
    unsafe { kyocho_arch::set_current_vp(vp.as_ptr()) };
    let atomics = measure(Atomics);
    let restartable = measure(Restartable::new(vp));
    let call = report("system call", "sched_yield", ROUNDS / 10, yield_to_host);
    let names = ["try_lock + unlock", "counter add", "free list", "queue"];
    for (name, (ours, theirs)) in names.iter().zip(restartable.iter().zip(atomics)) {
        println!(
            "{name:<20} restartable / atomics {:.2}   system call / restartable {:.0}",
            ours / theirs,
            call / ours
        );
    }
}
