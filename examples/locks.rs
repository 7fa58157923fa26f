//! Paper 0, for kernel threads: a counter with a part for each CPU, a lock whose owner needs no
//! atomic instruction, and a semaphore over three methods.
//!
//!     cargo run --release --example locks
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use kyocho::tst::biased::biased;
use kyocho::tst::blocking::semaphore::Semaphore;
use kyocho::tst::{Atomics, Everywhere, Lamport, Mechanism, PerCpuCounter, SystemCall};
use std::collections::HashMap;
use std::thread::{scope, spawn};

const THREADS: usize = 4;
const ROUNDS: usize = 10_000;

fn main() {
    let counter = PerCpuCounter::new();
    scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| (0..ROUNDS).for_each(|_| counter.add(1)));
        }
    });
    assert_eq!(counter.sum(), THREADS * ROUNDS);
    match Mechanism::best() {
        (Mechanism::Rseq, _) => {
            println!("counted {} by sequences that Linux restarts", counter.sum());
        }
        (_, why) => println!("counted {} by atomic instructions: {why:?}", counter.sum()),
    }

    // One thread owns a table. A visitor reads it now and then, at a higher cost.
    let (mut owner, visitor) = biased(HashMap::new());
    let looker = spawn(move || (0..10).map(|_| visitor.lock().len()).max());
    for n in 0..ROUNDS {
        owner.lock().insert(n, n * n);
    }
    let seen = looker.join().expect("it only looks");
    println!("{} entries by the owner; a visitor saw {seen:?}", owner.lock().len());

    pass_items("atomics", || Atomics);
    pass_items("system call", SystemCall::new);
    pass_items("lamport", || Lamport::new(2 * THREADS));
}

/// Producers and consumers share two semaphores, over any method that serves all threads.
fn pass_items<M: Everywhere + Sync>(name: &str, method: impl Fn() -> M) {
    let (free, full) = (Semaphore::over(method(), 8), Semaphore::over(method(), 0));
    let pass = |from: &Semaphore<M>, to: &Semaphore<M>| {
        for _ in 0..ROUNDS / 10 {
            from.acquire();
            to.release().expect("there are eight slots");
        }
    };
    scope(|threads| {
        for _ in 0..THREADS / 2 {
            threads.spawn(|| pass(&free, &full));
            threads.spawn(|| pass(&full, &free));
        }
    });
    assert_eq!((free.value(), full.value()), (8, 0));
    println!("{} items passed by {name}", THREADS / 2 * (ROUNDS / 10));
}
