//! What people call other processes with today, timed as `bench/gates` times Kyocho's: one JSON line a figure.
//!
//! ```text
//! gates-peers call SYSTEM PLACE SIZE [CALLS]     PLACE is same or other (core)
//! ```
//!
//! | system | how it waits | how bytes go |
//! |---|---|---|
//! | iceoryx2 | looks again and again, and yields in between: its ports tell of nothing by themselves | in place |
//! | ipc-channel | sleeps in a socket | copied; as it chooses, by shared memory |
//! | tarpc | sleeps in a Unix socket, on tokio | bincode |
//! | tonic | the same | HTTP/2, as they are |
//!
//! A crate of its own, so that nobody needs these to build anything else. `bench/run --part gates --peers all` runs it beside the others.

#[path = "../../src/pair.rs"]
mod pair;
mod systems;
#[path = "../../src/timing.rs"]
mod timing;

use systems::{SYSTEMS, System};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", system, path, cpu, size] => {
            (find(system).serve)(path.as_ref(), number(cpu), number(size))
        }
        ["call", system, place, size] => pair::call(find(system), place, number(size), 20_000),
        ["call", system, place, size, calls] => {
            pair::call(find(system), place, number(size), number(calls))
        }
        _ => usage(),
    }
}

fn find(name: &str) -> &'static System {
    SYSTEMS.iter().find(|system| system.name == name).unwrap_or_else(|| usage())
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| usage())
}

/// Ends the program with status 2 and how to call it.
pub fn usage() -> ! {
    eprintln!("usage: gates-peers call SYSTEM same|other SIZE [CALLS]");
    let names: Vec<_> = SYSTEMS.iter().map(|system| system.name).collect();
    eprintln!("systems: {}", names.join(", "));
    std::process::exit(2)
}
