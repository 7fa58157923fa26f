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

mod arguments;
mod call;
mod death;
mod many;
mod pair;
mod systems;
mod timing;
mod urgent;

use arguments::{find, number, serve_or_call, usage};

const USAGE: &str = "gates call SYSTEM same|other SIZE [CALLS] | many SYSTEM CALLERS [CALLS] | death | urgent HOGS [CALLS]";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["many", system, callers] => many::run(find(system), number(callers), 100_000),
        ["many", system, callers, calls] => many::run(find(system), number(callers), number(calls)),
        ["death"] => death::run(),
        ["urgent", hogs] => urgent::run(number(hogs), 2_000),
        ["urgent", hogs, calls] => urgent::run(number(hogs), number(calls)),
        _ if serve_or_call(&words) => {}
        _ => usage(),
    }
}
