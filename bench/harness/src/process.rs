//! Runs a program once and measures its cost.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// Output and cost of a run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its standard output.
    pub output: String,
    /// Processor time of all its threads.
    pub cpu: Duration,
    /// From start to end.
    pub wall: Duration,
}

/// A command that is ended after `limit_s` seconds, with status 124.
pub fn limited(program: &Path, limit_s: u32) -> Command {
    let mut command = Command::new("timeout");
    command.arg(limit_s.to_string()).arg(program);
    command
}

/// Runs a command to its end, without input.
///
/// # Errors
/// It cannot be started, or ends with a status other than 0: the last line of its error output.
pub fn run(command: &mut Command) -> Result<Run, String> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|failure| format!("{}: {failure}", command.get_program().to_string_lossy()))?;
    // One after the other: no measured program writes more errors than a pipe holds.
    let output = read_all(child.stdout.take());
    let complaint = read_all(child.stderr.take());
    let usage = child.wait4().map_err(|failure| failure.to_string())?;
    let wall = start.elapsed();
    if !usage.status.success() {
        let last = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(match usage.status.code() {
            Some(124) => "no result in time".into(),
            _ => format!("{}: {last}", usage.status),
        });
    }
    Ok(Run { output, cpu: usage.rusage.utime + usage.rusage.stime, wall })
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // Output that cannot be read is missing, which its reader reports.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
