//! Paper 0: a lock without an atomic instruction. The threads that take it are preempted anywhere.
//!
//!     cargo run --release --example test_and_set
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use kyocho::microprocess::{Runtime, spawn, yield_now};
use kyocho::tst::{Counter, Restartable, TryLock};
use std::sync::Arc;

const THREADS: usize = 8;
const ROUNDS: usize = 50_000;

fn main() {
    let runtime = Runtime::builder().virtual_processors(1).build();
    let total = runtime.run(|| {
        let mechanism = loop {
            // `None` while a watcher checks whether this thread sleeps.
            match Restartable::current() {
                Some(mechanism) => break mechanism,
                None => yield_now(),
            }
        };
        let lock = Arc::new(TryLock::new(mechanism, 0_usize));
        let refusals = Arc::new(Counter::new(mechanism));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (lock, refusals) = (Arc::clone(&lock), Arc::clone(&refusals));
                spawn(move || (0..ROUNDS).for_each(|_| add_one(&lock, &refusals)))
            })
            .collect();
        for thread in threads {
            thread.join().expect("no thread panics");
        }
        println!("{} times a thread found the lock taken", refusals.get());
        loop {
            // All threads have left the lock, but this one may not hold its processor after
            // printing.
            match lock.try_lock() {
                Ok(total) => break *total,
                Err(_) => yield_now(),
            }
        }
    });
    assert_eq!(total, Ok(THREADS * ROUNDS), "an addition was lost");
    println!("{THREADS} threads added {ROUNDS} each: {}", THREADS * ROUNDS);
}

fn add_one(lock: &TryLock<Restartable, usize>, refusals: &Counter<Restartable>) {
    loop {
        if let Ok(mut total) = lock.try_lock() {
            *total += 1;
            return;
        }
        let _counted = refusals.add(1);
        yield_now();
    }
}
