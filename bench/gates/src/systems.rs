//! The systems compared: each serves, and each calls.

use std::path::Path;

mod floor;
mod kyocho;
mod socket;
mod threads;

/// How one system serves and calls.
pub struct System {
    /// Its name on the command line and in the report.
    pub name: &'static str,
    /// Serves at a path, on a CPU (`usize::MAX`: any), requests of so many bytes; does not return.
    pub serve: fn(&Path, usize, usize),
    /// Times calls with requests and replies of so many bytes; nanoseconds each.
    pub call: fn(&Path, usize, usize) -> Vec<f64>,
    /// Seconds that so many callers at a time took for so many calls each.
    pub many: Option<fn(&Path, usize, usize) -> f64>,
}

/// All of them; the first one is the baseline.
pub const SYSTEMS: &[System] = &[socket::SYSTEM, kyocho::SYSTEM, threads::SYSTEM, floor::SYSTEM];

/// From here on arguments are handed over in shared memory, where a system can.
pub const IN_PLACE_BYTES: usize = 1 << 16;

/// Waits until whoever started this process lets go of it.
pub fn stay() {
    let mut rest = String::new();
    let _end = std::io::stdin().read_line(&mut rest);
}
