//! The cost of the methods of `tst`, and of other locks: one JSON line per figure. `bench/run
//! --part locks` calls it.
//!
//! ```text
//! locks uncontended                acquire + release by one thread, beside xchg + store in the same run
//! locks operations                 paper 0, figure 12: sem_wait, pthread_mutex_trylock, tst by each method
//! locks items METHOD P C MS        paper 0, figure 13: items a second, P producers and C consumers, one CPU
//! locks revocation                 the cost for a visitor of a biased lock
//! ```

mod footprint;
mod items;
mod methods;
mod operations;
mod revocation;
mod timing;
mod uncontended;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["uncontended"] => uncontended::run(),
        ["operations"] => operations::run(),
        ["revocation"] => revocation::run(),
        ["items", method, producers, consumers, millis] => {
            match (producers.parse(), consumers.parse(), millis.parse()) {
                (Ok(producers), Ok(consumers), Ok(millis)) => {
                    items::run(method, producers, consumers, millis);
                }
                _ => usage(),
            }
        }
        _ => usage(),
    }
}

/// Prints the usage and ends the program with status 2.
pub fn usage() -> ! {
    eprintln!("usage: locks uncontended|operations|revocation|items METHOD PRODUCERS CONSUMERS MS");
    eprintln!("methods: {}", methods::NAMES.join(", "));
    std::process::exit(2)
}
