//! Tests that need a separate process, since what they count or change belongs to the whole
//! process.

use std::io::Write;

/// Set for the child process.
const CHILD: &str = "KYOCHO_TEST_CHILD";

/// Writes a line that the test harness does not capture.
pub(crate) fn say(line: &str) {
    // If standard error is closed, the line is lost.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs `body` of the test with this name in a separate process. Passes the output of that process,
/// and how it ended, to `judge`.
pub(crate) fn alone_judged(
    test: &str,
    body: impl FnOnce(),
    judge: impl FnOnce(&str, std::process::ExitStatus),
) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    for line in
        said.lines().filter(|line| line.starts_with("skipped ") || line.starts_with("soak "))
    {
        say(line);
    }
    judge(&said, output.status);
}

/// Runs `body` of the test with this name in a separate process, which must not fail.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    alone_judged(test, body, |said, status| assert!(status.success(), "{status}: {said}"));
}
