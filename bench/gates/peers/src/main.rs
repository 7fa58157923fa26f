//! Calls between processes by other libraries, timed as `bench/gates` times Kyocho's: one JSON line
//! per figure.
//!
//! ```text
//! gates-peers call SYSTEM PLACE SIZE [CALLS]     PLACE is same or other (core)
//! ```
//!
//! | system | how it waits | how bytes go |
//! |---|---|---|
//! | iceoryx2 | polls, and yields in between: its ports do not notify | in place |
//! | ipc-channel | sleeps in a socket | copied, or in shared memory, as it chooses |
//! | tarpc | sleeps in a Unix socket, on tokio | bincode |
//! | tonic | the same | HTTP/2, unencoded |
//!
//! A separate crate, so that nothing else depends on these libraries. `bench/run --part gates
//! --peers all` runs it beside the others.

#[path = "../../src/arguments.rs"]
mod arguments;
#[path = "../../src/call.rs"]
mod call;
#[path = "../../src/pair.rs"]
mod pair;
mod systems;
#[path = "../../src/timing.rs"]
mod timing;

const USAGE: &str = "gates-peers call SYSTEM same|other SIZE [CALLS]";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if !arguments::serve_or_call(&words) {
        arguments::usage();
    }
}
