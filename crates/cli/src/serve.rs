//! `kyocho serve`: one system for many users at the same time.
//!
//! The main kernel thread waits for signals: SIGHUP reads the configuration again, SIGTERM and
//! SIGINT end the server.

use crate::boot::{BootOutput, boot};
use crate::{signals, terminal};
use kyocho_lisp::system::Options;
use kyocho_server::{Address, Console, Plan, ServeError};
use std::path::PathBuf;
use std::process::ExitCode;

/// Prints the server's messages: information to standard output, errors to standard error.
pub(crate) const CONSOLE: Console =
    Console { announce: terminal::line, complain: terminal::complain };

/// `kyocho serve`.
pub(crate) fn command(options: Options, config: Option<PathBuf>, listen: Vec<Address>) -> ExitCode {
    match serve(options, config, listen) {
        Ok(code) => code,
        Err(error) => {
            terminal::complain(&format!("kyocho: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn serve(
    options: Options,
    config: Option<PathBuf>,
    listen: Vec<Address>,
) -> Result<ExitCode, ServeError> {
    let plan = Plan::new(config, listen, options)?;
    let booted = boot(plan.options().clone(), BootOutput::Services);
    let Some(system) = booted else { return Ok(ExitCode::FAILURE) };
    let server = plan.start(system, CONSOLE)?;
    signals::serve(|| server.reload());
    server.stop();
    Ok(ExitCode::SUCCESS)
}
