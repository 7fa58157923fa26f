//! All printing goes through this file. If the output is a closed pipe, the command ends silently,
//! as `head` expects.

use crate::{highlight, layout};
use kyocho_lisp::system::CLOSED_OUTPUT_EXIT;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::io::{ErrorKind, IsTerminal, Write};

/// Whether the last output ended a line.
static IS_AT_LINE_START: AtomicBool = AtomicBool::new(true);

/// Prints a line to standard output.
pub(crate) fn line(line: &str) {
    text(&format!("{line}\n"));
}

/// Prints text to standard output unchanged.
pub(crate) fn text(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Some(last) = text.chars().last() {
        IS_AT_LINE_START.store(last == '\n', Ordering::Relaxed);
    }
    exit_unless(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Begins a new line on a terminal if [`text`] left one unfinished. Otherwise the line editor would
/// overwrite it.
pub(crate) fn fresh_line() {
    if !IS_AT_LINE_START.load(Ordering::Relaxed) && std::io::stdout().is_terminal() {
        text("\n");
    }
}

/// Prints a value to standard output. On a terminal it is broken into lines that fit, and coloured
/// if the terminal has colours.
pub(crate) fn value(text: &str) {
    fresh_line();
    let text = columns().map_or_else(|| text.to_owned(), |columns| layout::wrapped(text, columns));
    let coloured = has_colours(&std::io::stdout());
    line(&if coloured { highlight::scheme(&text, None) } else { text });
}

/// The width of the terminal on standard output. `None` if there is none.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

fn exit_unless(written: std::io::Result<()>) {
    if let Err(error) = written {
        let code = if error.kind() == ErrorKind::BrokenPipe { CLOSED_OUTPUT_EXIT } else { 1 };
        std::process::exit(code.into());
    }
}

/// Prints a message to standard error.
pub(crate) fn complain(text: &str) {
    // If this fails, the exit code still reports the failure. One write, because programs started
    // from here write to the same place.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Prints the report of an error to standard error, in colours if that is a terminal with colours.
pub(crate) fn report(text: &str) {
    fresh_line();
    if has_colours(&std::io::stderr()) {
        complain(&highlight::report(text));
    } else {
        complain(text);
    }
}

/// Whether the stream is a terminal with colours, and the user wants them (<https://no-color.org>).
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    let says = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    stream.is_terminal()
        && says("NO_COLOR").is_none()
        && says("TERM").is_some_and(|terminal| terminal != "dumb")
}
