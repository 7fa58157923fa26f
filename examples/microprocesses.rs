//! Paper 1: the prime sieve of table 4, a chain of threads, while another thread sleeps in the
//! kernel.
//!
//!     cargo run --release --example microprocesses
#![expect(clippy::print_stdout, reason = "an example shows what it found")]
#![expect(clippy::disallowed_methods, reason = "a sleep behind the runtime's back is the point")]

use core::time::Duration;
use kyocho::microprocess::channel::{Receiver, rendezvous};
use kyocho::microprocess::{Runtime, spawn, statistics};

const LIMIT: u32 = 700;

fn main() {
    let runtime = Runtime::builder().virtual_processors(1).build();
    let outcome = runtime.run(|| {
        // The runtime does not know of this sleep: the virtual processor runs the other threads.
        let sleeper = spawn(|| std::thread::sleep(Duration::from_millis(20)));
        let primes = primes(LIMIT);
        sleeper.join().expect("the sleeper does not panic");
        (primes, statistics())
    });
    let (primes, statistics) = outcome.expect("somebody can always run");
    println!("{} primes up to {LIMIT}, the last {:?}", primes.len(), primes.last());
    println!("{statistics:?}");
    assert_eq!((primes.len(), primes.last()), (125, Some(&691)));
}

fn primes(limit: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut numbers = source(limit);
    while let Ok(prime) = numbers.recv() {
        found.push(prime);
        numbers = indivisible_by(prime, numbers);
    }
    found
}

fn source(limit: u32) -> Receiver<u32> {
    let (to, numbers) = rendezvous();
    spawn(move || (2..=limit).try_for_each(|n| to.send(n)));
    numbers
}

fn indivisible_by(prime: u32, numbers: Receiver<u32>) -> Receiver<u32> {
    let (to, rest) = rendezvous();
    spawn(move || numbers.iter().filter(|n| n % prime != 0).try_for_each(|n| to.send(n)));
    rest
}
