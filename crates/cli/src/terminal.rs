//! The only place that prints. A closed pipe ends the command quietly, as `head` expects.

use crate::{highlight, layout};
use kyocho_lisp::system::CLOSED_OUTPUT_EXIT;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::io::{ErrorKind, IsTerminal, Write};

/// What was printed last ended a line.
static IS_AT_LINE_START: AtomicBool = AtomicBool::new(true);

/// Prints a line to standard output.
pub(crate) fn line(line: &str) {
    text(&format!("{line}\n"));
}

/// Prints text as it is to standard output.
pub(crate) fn text(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Some(last) = text.chars().last() {
        IS_AT_LINE_START.store(last == '\n', Ordering::Relaxed);
    }
    exit_unless(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Begins a line on a terminal where [`text`] left one unfinished: an editor of lines would write over it.
pub(crate) fn fresh_line() {
    if !IS_AT_LINE_START.load(Ordering::Relaxed) && std::io::stdout().is_terminal() {
        text("\n");
    }
}

/// Prints a value to standard output: in lines that fit where it is a terminal, and in colours where that has some.
pub(crate) fn value(text: &str) {
    fresh_line();
    let text = columns().map_or_else(|| text.to_owned(), |columns| layout::wrapped(text, columns));
    let coloured = has_colours(&std::io::stdout());
    line(&if coloured { highlight::scheme(&text, None) } else { text });
}

/// How wide the terminal is that standard output is, where it says so.
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
    // Where not even this can be told, the exit code still tells that something went wrong.
    // In one piece: programs that are started from here write there as well.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Prints the report of an error to standard error, in colours where it is a terminal that has some.
pub(crate) fn report(text: &str) {
    fresh_line();
    if has_colours(&std::io::stderr()) {
        complain(&highlight::report(text));
    } else {
        complain(text);
    }
}

/// Whether it is a terminal that has colours, of a user who wants some (<https://no-color.org>).
pub(crate) fn has_colours(stream: &impl IsTerminal) -> bool {
    let says = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    stream.is_terminal()
        && says("NO_COLOR").is_none()
        && says("TERM").is_some_and(|terminal| terminal != "dumb")
}
