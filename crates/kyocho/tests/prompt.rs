//! The prompt as a user at a terminal meets it, driven through a pseudo-terminal.

use rexpect::session::{PtySession, spawn_command};
use std::path::{Path, PathBuf};
use std::process::Command;

/// No wait below is meant to last; this only keeps a broken prompt from hanging the test run.
const WATCHDOG_MS: u64 = 60_000;

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
    let mut session = spawn_command(command, Some(WATCHDOG_MS)).expect("a pseudo-terminal opens");
    session.exp_string("> ").expect("a prompt appears");
    session
}

fn leave(mut session: PtySession) {
    session.send_control('d').expect("the terminal takes Ctrl-D");
    session.exp_eof().expect("Ctrl-D leaves");
}

#[test]
fn values_are_printed() {
    let mut session = prompt(&state_folder("values"));
    session.send_line("(+ 40 2)").expect("the terminal takes a line");
    session.exp_string("42").expect("the value is printed");
    leave(session);
}

#[test]
fn a_form_may_span_lines() {
    let mut session = prompt(&state_folder("lines"));
    session.send_line("(define (twice x)").expect("the terminal takes a line");
    session.send_line("  (* 2 x))").expect("the terminal takes a line");
    session.send_line("(twice 2121)").expect("the terminal takes a line");
    session.exp_string("4242").expect("the form was read whole");
    leave(session);
}

#[test]
fn an_error_keeps_the_session() {
    let mut session = prompt(&state_folder("error"));
    session.send_line("(define kept 4711)").expect("the terminal takes a line");
    session.send_line("(car 'x)").expect("the terminal takes a line");
    session.exp_string("car").expect("the error names the procedure");
    session.send_line("(+ kept 1)").expect("the terminal takes a line");
    session.exp_string("4712").expect("the session goes on");
    leave(session);
}

#[test]
fn control_c_stops_an_evaluation_and_keeps_the_session() {
    let mut session = prompt(&state_folder("interrupt"));
    session.send_line("(define kept 4711)").expect("the terminal takes a line");
    session
        .send_line("(begin (display \"spin\") (display \"ning\") (flush-output-port) (let loop () (loop)))")
        .expect("the terminal takes a line");
    session.exp_string("spinning").expect("the evaluation has begun");
    session.send_control('c').expect("the terminal takes Ctrl-C");
    session.exp_string("interrupt").expect("the evaluation says that it was interrupted");
    session.send_line("(+ kept 1)").expect("the terminal takes a line");
    session.exp_string("4712").expect("the session goes on");
    leave(session);
}

#[test]
fn tab_completes_a_bound_name() {
    let mut session = prompt(&state_folder("completion"));
    session.send_line("(define unmistakable-name 4711)").expect("the terminal takes a line");
    session.send("(+ 1 unmistak\t)\r").expect("the terminal takes keys");
    session.flush().expect("the terminal takes keys");
    session.exp_string("4712").expect("the completed name was evaluated");
    leave(session);
}

#[test]
fn history_is_kept_between_runs() {
    let state = state_folder("history");
    let mut session = prompt(&state);
    session.send_line("(* 1111 2)").expect("the terminal takes a line");
    session.exp_string("2222").expect("the value is printed");
    leave(session);
    let mut session = prompt(&state);
    session.send("\x1b[A\r").expect("the terminal takes the arrow key");
    session.flush().expect("the terminal takes keys");
    session.exp_string("2222").expect("the last line of the first run was evaluated again");
    leave(session);
}
