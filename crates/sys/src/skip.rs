//! Reporting that a test cannot run on this machine.

use std::io::Write;

/// Reports that this machine cannot run a test, and why. Bypasses the test harness's capture, in
/// the one format that `scripts/test` counts.
pub fn skip(name: &str, why: &str) {
    // Fails only if standard error is closed.
    let _ = writeln!(std::io::stderr(), "skipped {name}: {why}");
}
