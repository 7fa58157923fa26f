//! `kyocho tour`: boots and lists the services, runs the tour program, then gives a prompt if there
//! is a terminal.

use crate::boot::{BootOutput, boot};
use crate::{prompt, terminal};
use kyocho_lisp::system::Options;
use std::io::IsTerminal;
use std::process::ExitCode;

const TOUR: &str = include_str!("tour.scm");

pub(crate) fn command(options: Options) -> ExitCode {
    let Some(system) = boot(options, BootOutput::Services) else { return ExitCode::FAILURE };
    let mut session = system.session();
    if let Err(report) = session.eval(TOUR, "tour.scm") {
        terminal::complain(&report.to_string());
        return ExitCode::FAILURE;
    }
    if std::io::stdin().is_terminal() {
        return prompt::interact(&system, session);
    }
    ExitCode::SUCCESS
}
