//! The systems compared. Each has a server and a client. The server returns the request; each cache
//! line of it is written and read.

use std::path::Path;

mod iceoryx;
mod ipc_channel;
mod tarpc;
mod tonic;

/// Server and client of a system.
pub struct System {
    /// Its name on the command line and in the report.
    pub name: &'static str,
    /// Serves at a path, on a CPU, requests of the given length. Does not return.
    pub serve: fn(&Path, usize, usize),
    /// Times calls with requests and replies of the given length. Returns the nanoseconds of each.
    pub call: fn(&Path, usize, usize) -> Vec<f64>,
}

pub const SYSTEMS: &[System] =
    &[iceoryx::SYSTEM, ipc_channel::SYSTEM, tarpc::SYSTEM, tonic::SYSTEM];

const LINE_BYTES: usize = 64;

/// Writes one byte of each cache line, as any use of the bytes would.
fn touch(bytes: &mut [u8], value: u8) {
    bytes.iter_mut().step_by(LINE_BYTES).for_each(|byte| *byte = value);
}

/// Reads one byte of each cache line.
fn check(bytes: &[u8], length: usize, value: u8) {
    assert_eq!(bytes.len(), length, "the answer is there");
    assert!(bytes.iter().step_by(LINE_BYTES).all(|&byte| byte == value), "the answer is right");
}

/// A tokio runtime on this kernel thread.
fn tokio() -> ::tokio::runtime::Runtime {
    ::tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
