//! The prompt as a user at a terminal meets it, driven through a pseudo-terminal.

use rexpect::session::{PtySession, spawn_command};
use std::path::{Path, PathBuf};
use std::process::Command;

/// No wait below is meant to last; this only keeps a broken prompt from hanging the test run.
const WATCHDOG_MS: u64 = 30_000;

fn state_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Left over from an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the test's folder can be made");
    folder
}

fn prompt(state: &Path) -> PtySession {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.env("XDG_STATE_HOME", state).env("TERM", "xterm").env_remove("NO_COLOR");
    spawn_command(command, Some(WATCHDOG_MS)).expect("a pseudo-terminal opens")
}

/// What the line editor writes once it listens: bracketed paste goes on.
const LISTENING: &str = "\x1b[?2004h";

/// Types `keys` at the next prompt.
fn type_keys(session: &mut PtySession, keys: &str) {
    session.exp_string(LISTENING).expect("a prompt appears");
    session.send(keys).expect("the terminal takes keys");
    session.flush().expect("the terminal takes keys");
}

/// Types a form at the next prompt.
fn enter(session: &mut PtySession, form: &str) {
    type_keys(session, &format!("{form}\r"));
}

fn expect(session: &mut PtySession, text: &str) {
    session.exp_string(text).unwrap_or_else(|error| panic!("waited for {text:?}: {error}"));
}

fn leave(mut session: PtySession) {
    session.exp_string(LISTENING).expect("a prompt appears");
    session.send_control('d').expect("the terminal takes Ctrl-D");
    session.exp_eof().expect("Ctrl-D leaves");
}

#[test]
fn values_are_printed() {
    let mut session = prompt(&state_folder("values"));
    enter(&mut session, "(+ 40 2)");
    expect(&mut session, "42");
    leave(session);
}

#[test]
fn a_form_may_span_lines() {
    let mut session = prompt(&state_folder("lines"));
    enter(&mut session, "(define (twice x)\r  (* 2 x))");
    enter(&mut session, "(twice 2121)");
    expect(&mut session, "4242");
    leave(session);
}

#[test]
fn an_error_keeps_the_session() {
    let mut session = prompt(&state_folder("error"));
    enter(&mut session, "(define kept 4711)");
    enter(&mut session, "(car 'x)");
    expect(&mut session, "must be a pair");
    enter(&mut session, "(+ kept 1)");
    expect(&mut session, "4712");
    leave(session);
}

#[test]
fn control_c_stops_an_evaluation_and_keeps_the_session() {
    let mut session = prompt(&state_folder("interrupt"));
    enter(&mut session, "(define kept 4711)");
    enter(
        &mut session,
        "(begin (display \"spin\") (display \"ning\") (flush-output-port) (let loop () (loop)))",
    );
    expect(&mut session, "spinning");
    session.send_control('c').expect("the terminal takes Ctrl-C");
    expect(&mut session, "interrupted");
    enter(&mut session, "(+ kept 1)");
    expect(&mut session, "4712");
    leave(session);
}

#[test]
fn tab_completes_a_bound_name() {
    let mut session = prompt(&state_folder("completion"));
    enter(&mut session, "(define unmistakable-name 4711)");
    enter(&mut session, "(+ 1 unmistak\t)");
    expect(&mut session, "4712");
    leave(session);
}

#[test]
fn history_is_kept_between_runs() {
    let state = state_folder("history");
    let mut session = prompt(&state);
    enter(&mut session, "(* 1111 2)");
    expect(&mut session, "2222");
    leave(session);
    let mut session = prompt(&state);
    enter(&mut session, "\x1b[A");
    expect(&mut session, "2222");
    leave(session);
}
