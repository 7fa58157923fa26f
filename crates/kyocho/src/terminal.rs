//! The only place that prints. A closed pipe ends the command quietly, as `head` expects.
#![expect(clippy::print_stderr, reason = "this file is where the command speaks")]

use std::io::{ErrorKind, Write};

/// Prints a line to standard output.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        let code = if error.kind() == ErrorKind::BrokenPipe { 0 } else { 1 };
        std::process::exit(code);
    }
}

/// Prints a message to standard error.
pub(crate) fn complain(text: &str) {
    eprintln!("{text}");
}
