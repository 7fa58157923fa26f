//! Runs the tools that build the measured programs.

use std::process::{Command, Output};

/// Runs a command to its end.
///
/// # Errors
/// Its error message, or the reason why it could not be started.
pub fn finish(command: &mut Command) -> Result<(), String> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|failure| format!("{tool}: {failure}"))?;
    if output.status.success() { Ok(()) } else { Err(first_complaint(&tool, &output)) }
}

/// The first line of error output that names the error.
pub fn first_complaint(tool: &str, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text
        .lines()
        .find(|line| {
            line.contains("rror") || line.contains("failed") || line.contains("overflowed")
        })
        .or_else(|| text.lines().find(|line| !line.trim().is_empty()));
    format!(
        "{tool}: {}",
        line.map_or_else(|| output.status.to_string(), |line| line.trim().to_owned())
    )
}
