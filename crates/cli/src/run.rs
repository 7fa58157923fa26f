//! `kyocho run FILE`: one program, its output and its exit code.

use crate::boot::{BootOutput, boot_world};
use crate::signals;
use kyocho_lisp::system::Options;
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn command(options: Options, file: &Path, arguments: Vec<String>) -> ExitCode {
    let options = Options { script: Some(file.to_path_buf()), arguments, ..options };
    let Some(mut system) = boot_world(options, BootOutput::Quiet) else { return ExitCode::FAILURE };
    signals::end_on_signals(&system);
    let outcome = system.run_file(file);
    if let Some(report) = &outcome.report {
        crate::terminal::complain(&report.to_string());
    }
    if outcome.exit_code == 0
        && let Err(why) = kyocho_lisp::shared::leave()
    {
        crate::terminal::complain(&format!("kyocho run: {why}"));
        return ExitCode::FAILURE;
    }
    ExitCode::from(outcome.exit_code)
}
