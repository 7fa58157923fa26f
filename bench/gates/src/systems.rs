//! The systems compared. Each has a server and a client.

use std::path::Path;

mod floor;
mod kyocho;
mod socket;
mod threads;

/// Server and client of a system.
pub struct System {
    /// Its name on the command line and in the report.
    pub name: &'static str,
    /// Serves at a path, on a CPU (`usize::MAX`: any), requests of the given length. Does not
    /// return.
    pub serve: fn(&Path, usize, usize),
    /// Times calls with requests and replies of the given length. Returns the nanoseconds of each.
    pub call: fn(&Path, usize, usize) -> Vec<f64>,
    /// Seconds that a number of concurrent callers took for a number of calls each.
    pub many: Option<fn(&Path, usize, usize) -> f64>,
}

/// All of them; the first one is the baseline.
pub const SYSTEMS: &[System] = &[socket::SYSTEM, kyocho::SYSTEM, threads::SYSTEM, floor::SYSTEM];

/// Arguments of at least this length are passed in shared memory, if the system supports that.
pub const IN_PLACE_BYTES: usize = 1 << 16;

/// Waits until the parent process closes the standard input.
pub fn stay() {
    let mut rest = String::new();
    let _end = std::io::stdin().read_line(&mut rest);
}
