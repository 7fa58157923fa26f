//! Tests that need a process of their own: what they count or change belongs to the whole process.

use std::io::Write;

/// Marks the child process.
const CHILD: &str = "KYOCHO_TEST_CHILD";

/// Writes a line past the test harness's capture.
pub(crate) fn say(line: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs `body` of the test with this name in a process of its own; gives what that process said and how it ended to `judge`.
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

/// Runs `body` of the test with this name in a process of its own, where it must not fail.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    alone_judged(test, body, |said, status| assert!(status.success(), "{status}: {said}"));
}
