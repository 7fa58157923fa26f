//! Runs the tools that build the measured programs.

use crate::process;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The package of the command.
const COMMAND: &str = "kyocho-cli";

/// Runs a command to its end.
///
/// # Errors
/// Its error message, or the reason why it could not be started.
pub fn finish(command: &mut Command) -> Result<(), String> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|failure| format!("{tool}: {failure}"))?;
    if output.status.success() { Ok(()) } else { Err(first_complaint(&tool, &output)) }
}

/// Builds a bench of a package of the workspace, beside the command, and returns its path.
///
/// # Errors
/// The error of cargo.
pub fn bench(package: &str, name: &str, into: &Path) -> Result<PathBuf, String> {
    eprintln!("bench: building {name}");
    let into = into.canonicalize().map_err(|failure| failure.to_string())?.join("kyocho");
    let mut cargo = Command::new("cargo");
    // With the command's package, so that what both depend on has the same features, and is built
    // once.
    let packages = if package == COMMAND { vec![COMMAND] } else { vec![COMMAND, package] };
    cargo.args(["bench", "--quiet", "--bench", name, "--no-run", "--message-format", "json"]);
    cargo.args(packages.into_iter().flat_map(|package| ["-p", package]));
    let told = process::run(cargo.arg("--target-dir").arg(&into))?.output;
    let messages = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == name);
    let program = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.ok_or_else(|| format!("cargo built no program for the bench `{name}`"))
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
