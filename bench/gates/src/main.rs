//! The cost of a call to another process, by gates and by other means: one JSON line per figure.
//!
//! ```text
//! gates call SYSTEM PLACE SIZE [CALLS]    SIZE: 0, 4096 each way, 1048576 in place; PLACE: same, other (core)
//! gates many SYSTEM CALLERS [CALLS]       this many concurrent callers
//! gates death                             the delay until a caller notices its server's death
//! gates urgent HOGS [CALLS]               longest call of a real-time caller beside spinning programs
//! ```
//!
//! `bench/run --part gates` compares them; the baseline is the Unix stream socket. A server is this
//! program, started as `gates serve ...`.

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
