//! Many callers at a time.

use serde_json::json;

use crate::pair::Server;
use crate::systems::System;

/// Calls a second of `callers` at a time, wherever the host puts them.
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
