//! Calls of one caller, between two cores or on one.

use kyocho_sys::scheduling::affinity;
use kyocho_sys::task::ThreadId;
use serde_json::json;

use crate::pair::{Server, stay_on};
use crate::systems::System;
use crate::timing::spread;

/// Times calls to a server on the `same` core or on an `other` one, and prints the line.
///
/// Returns `false` if `place` is neither, or if there is only one core for `other`.
pub fn run(system: &System, place: &str, size: usize, calls: usize) -> bool {
    let cpus: Vec<usize> = affinity(ThreadId::current()).expect("a set").iter().collect();
    let here = cpus[0];
    let there = match place {
        "same" => here,
        "other" if cpus.len() > 1 => cpus[1],
        _ => return false,
    };
    let server = Server::start(system.name, there, size);
    stay_on(here);
    let ns = (system.call)(&server.path(), size, calls);
    println!(
        "{}",
        json!({ "bench": "call", "system": system.name, "place": place, "bytes": size, "ns": spread(&ns) })
    );
    true
}
