//! `kyocho trace`: records a timeline of a running process or of a new program, for Perfetto or
//! Chrome.

use crate::terminal;
use core::time::Duration;
use kyocho_microprocess::control::client::{self, Client};
use kyocho_microprocess::control::protocol::{Reply, Request};
use kyocho_microprocess::trace::{Timeline, chrome};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Records `process` for `seconds`. Without a number, there must be only one Kyocho process.
pub(crate) fn process(process: Option<u32>, seconds: f64, file: &Path) -> ExitCode {
    let recorded = only(process).and_then(|process| record(process, seconds));
    match recorded.and_then(|timeline| write(&timeline, file)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::complain(&format!("kyocho: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The process to record.
fn only(process: Option<u32>) -> io::Result<u32> {
    if let Some(process) = process {
        return Ok(process);
    }
    match client::processes()?.as_slice() {
        [one] => Ok(*one),
        [] => Err(io::Error::other(
            "no running program of yours has a control socket: start it with KYOCHO_CONTROL=1",
        )),
        many => Err(io::Error::other(format!(
            "several Kyocho programs are running: give the number of one, {many:?}"
        ))),
    }
}

fn record(process: u32, seconds: f64) -> io::Result<Timeline> {
    let mut client = Client::connect(process)?;
    client.ask(&Request::TraceStart {})?;
    wait(seconds);
    // A new connection, because the process closes one that is silent for long.
    match Client::connect(process)?.ask(&Request::TraceStop {})? {
        Reply::Timeline(timeline) => Ok(timeline),
        other => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}"))),
    }
}

fn wait(seconds: f64) {
    let length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let deadline_ns =
        kyocho_microprocess::Deadline::after(length).map_or(0, |deadline| deadline.ns());
    // A signal handler ran: sleep for the rest of the time.
    while kyocho_sys::sleep::until(deadline_ns).is_err() {}
}

fn write(timeline: &Timeline, file: &Path) -> io::Result<()> {
    std::fs::write(file, chrome::text(timeline))
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    terminal::line(&format!(
        "{}: {} events of {} virtual processors in {} ms, {} older events dropped; open it in https://ui.perfetto.dev",
        file.display(),
        timeline.moments.len(),
        timeline.virtual_processors,
        timeline.to_ns.saturating_sub(timeline.from_ns) / 1_000_000,
        timeline.dropped
    ));
    Ok(())
}

/// Runs a program, and records it from the start of its first runtime to its end.
pub(crate) fn program(words: &[OsString], file: &Path) -> ExitCode {
    let Some((program, arguments)) = words.split_first() else { return ExitCode::from(2) };
    // An absolute path, because the program may change its current folder.
    let Ok(path) = std::path::absolute(file) else { return ExitCode::from(2) };
    let status = Command::new(program).args(arguments).env("KYOCHO_TRACE", &path).status();
    match status {
        Err(error) => {
            terminal::complain(&format!("kyocho: {}: {error}", program.to_string_lossy()));
            ExitCode::FAILURE
        }
        Ok(status) => {
            if !path.exists() {
                terminal::complain(&format!(
                    "kyocho: {} recorded nothing. It must be a Kyocho program, and must end normally",
                    program.to_string_lossy()
                ));
                return ExitCode::FAILURE;
            }
            terminal::line(&format!("{}: open it in https://ui.perfetto.dev", file.display()));
            status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8))
        }
    }
}
