//! Many concurrent callers.

use serde_json::json;

use crate::pair::Server;
use crate::systems::System;

/// Prints the calls per second of `callers` concurrent callers, on any CPUs.
pub fn run(system: &System, callers: usize, calls: usize) {
    let Some(many) = system.many else { crate::arguments::usage() };
    let server = Server::start(system.name, usize::MAX, 0);
    let seconds = many(&server.path(), callers, calls / callers);
    let rate = (calls / callers * callers) as f64 / seconds;
    println!(
        "{}",
        json!({ "bench": "many", "system": system.name, "callers": callers, "calls_per_s": rate })
    );
}
