//! What a call to another process costs, by gate and by what people use today: one JSON line a figure.
//!
//! ```text
//! gates call SYSTEM PLACE SIZE [CALLS]    null calls, 4096 bytes each way, or 1048576 bytes in place; PLACE is same or other (core)
//! gates many SYSTEM CALLERS [CALLS]       so many callers at a time
//! gates death                             how long after its server died a caller knows
//! gates urgent HOGS [CALLS]               the longest of a real-time caller's calls beside programs that spin on its core
//! ```
//!
//! `bench/run --part gates` sets them beside each other; the baseline is the Unix stream socket. A server is this program again, as `gates serve ...`.

mod death;
mod many;
mod pair;
mod systems;
mod timing;
mod urgent;

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
        ["many", system, callers] => many::run(find(system), number(callers), 100_000),
        ["many", system, callers, calls] => many::run(find(system), number(callers), number(calls)),
        ["death"] => death::run(),
        ["urgent", hogs] => urgent::run(number(hogs), 2_000),
        ["urgent", hogs, calls] => urgent::run(number(hogs), number(calls)),
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
    eprintln!(
        "usage: gates call SYSTEM same|other SIZE [CALLS] | many SYSTEM CALLERS [CALLS] | death | urgent HOGS [CALLS]"
    );
    eprintln!(
        "systems: {}",
        SYSTEMS.iter().map(|system| system.name).collect::<Vec<_>>().join(", ")
    );
    std::process::exit(2)
}
