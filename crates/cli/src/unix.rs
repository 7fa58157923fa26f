//! `kyocho unix -- PROGRAM`: runs a program under a UNIX server.
//!
//! Exit codes are a shell's: the program's own, 128 + N if signal N ended it, 127 if there is no
//! such program, 126 if it cannot be executed. 125 means that the server could not be started, or
//! was lost.

use crate::command_line::UnixArguments;
use crate::terminal;
use kyocho_unix::{Outcome, StartError};
use std::process::ExitCode;

const NO_INSTANCE: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const SIGNALLED: u8 = 128;

pub(crate) fn command(arguments: &UnixArguments) -> ExitCode {
    let environment: Vec<_> = std::env::vars_os().collect();
    match kyocho_unix::run(&arguments.to_options(), &arguments.program, &environment) {
        Ok(Outcome::Exited(code)) => ExitCode::from(code),
        Ok(Outcome::Signalled(signal)) => ExitCode::from(SIGNALLED.wrapping_add(signal as u8)),
        Err(error) => {
            terminal::complain(&error.to_string());
            ExitCode::from(match error {
                StartError::NotFound(_) => NOT_FOUND,
                StartError::NotExecutable(..) => NOT_EXECUTABLE,
                _ => NO_INSTANCE,
            })
        }
    }
}
