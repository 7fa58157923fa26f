//! A Python with a client library, installed as its users install it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A Python that can import `module`, in a virtual environment of the tests, which is kept between
/// runs. `requirement` is installed if it is missing.
///
/// # Errors
/// The reason why there is none.
pub(crate) fn python_with(module: &str, requirement: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-with-{module}"));
    let python = folder.join("bin/python");
    let has_module = || succeeds(Command::new(&python).args(["-c", &format!("import {module}")]));
    if has_module() {
        return Ok(python);
    }
    if !succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)) {
        return Err("no virtual environment can be made (python3 with venv)".into());
    }
    let options = ["-m", "pip", "install", "--quiet", "--timeout", "20", "--retries", "1"];
    if !succeeds(Command::new(&python).args(options).arg(requirement)) || !has_module() {
        return Err(format!("{requirement} cannot be had from PyPI"));
    }
    Ok(python)
}
