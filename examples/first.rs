//! A first program: ten microprocesses send squares through a channel.
//!
//!     cargo run --release --example first
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use kyocho::microprocess::{channel, run, spawn};

fn main() {
    let sum = run(|| {
        let (sender, squares) = channel::rendezvous();
        for n in 1..=10_u32 {
            let sender = sender.clone();
            spawn(move || sender.send(n * n));
        }
        // The loop over a channel ends when its last sender is dropped.
        drop(sender);
        squares.into_iter().sum::<u32>()
    });
    println!("the sum of ten squares is {}", sum.expect("no deadlock"));
}
