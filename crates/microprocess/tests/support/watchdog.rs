//! Ends a test that hangs, and prints its name.

use core::time::Duration;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};

/// Longer than any run on a loaded machine: a test that takes this long hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs `body`; aborts the process if it does not end.
pub(crate) fn under_watchdog<T>(name: &'static str, body: impl FnOnce() -> T) -> T {
    under_watchdog_for(LIMIT, name, body)
}

/// The same with another limit, for longer tests.
pub(crate) fn under_watchdog_for<T>(
    limit: Duration,
    name: &'static str,
    body: impl FnOnce() -> T,
) -> T {
    let (ended, end) = channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            // Not a panic: this thread is not joined.
            let _closed = writeln!(std::io::stderr(), "{name} hangs");
            std::process::abort();
        }
    });
    let result = body();
    drop(ended);
    assert!(watchdog.join().is_ok(), "the watchdog does not panic");
    result
}
