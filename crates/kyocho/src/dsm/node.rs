//! `kyocho dsm node`: at the far end of a remote shell. The place comes by standard input, because it holds the secret, and a command
//! line can be read by every user of a host.

use std::ffi::OsString;
use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::terminal::complain;

/// Longest list of variables.
const LINES_MAX: usize = 16;

/// Reads `NAME=value` lines up to an empty one, and becomes the program.
pub(crate) fn command(program: &[OsString]) -> ExitCode {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).stdin(std::process::Stdio::null());
    let lines = std::io::stdin().lock().lines().map_while(Result::ok);
    for line in lines.take(LINES_MAX).take_while(|line| !line.is_empty()) {
        let variable = line.split_once('=').filter(|(name, _)| name.starts_with("KYOCHO_DSM_"));
        let Some((name, value)) = variable else {
            complain("kyocho dsm node: expected what `kyocho dsm run` sends");
            return ExitCode::from(2);
        };
        command.env(name, value);
    }
    let why = command.exec();
    complain(&format!("cannot run {}: {why}", program[0].display()));
    ExitCode::FAILURE
}
