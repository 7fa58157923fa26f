//! The command line of `gates` and of `gates-peers`: each has its own systems.

use crate::USAGE;
use crate::call;
use crate::systems::{SYSTEMS, System};

/// Serves, or times calls, if the words ask for that. Returns `false` if they ask for something
/// else.
pub fn serve_or_call(words: &[&str]) -> bool {
    match *words {
        ["serve", system, path, cpu, size] => {
            (find(system).serve)(path.as_ref(), number(cpu), number(size));
            true
        }
        ["call", system, place, size] => call::run(find(system), place, number(size), 20_000),
        ["call", system, place, size, calls] => {
            call::run(find(system), place, number(size), number(calls))
        }
        _ => false,
    }
}

pub fn find(name: &str) -> &'static System {
    SYSTEMS.iter().find(|system| system.name == name).unwrap_or_else(|| usage())
}

pub fn number(text: &str) -> usize {
    text.parse().unwrap_or_else(|_| usage())
}

/// Prints the usage and ends the program with status 2.
pub fn usage() -> ! {
    let names: Vec<_> = SYSTEMS.iter().map(|system| system.name).collect();
    eprintln!("usage: {USAGE}\nsystems: {}", names.join(", "));
    std::process::exit(2)
}
