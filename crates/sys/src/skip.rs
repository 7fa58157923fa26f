//! How a test says that it cannot run here.

use std::io::Write;

/// Names a test that this machine cannot run, and why. Written past the test harness's capture, in
/// the one shape that `scripts/test` counts.
pub fn skip(name: &str, why: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped {name}: {why}");
}
