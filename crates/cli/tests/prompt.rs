//! The prompt as a user at a terminal sees it, driven through a pseudo-terminal.

use rexpect::session::{PtySession, spawn_command};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Ends a test that hangs.
const WATCHDOG_MS: u64 = 30_000;

fn state_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Left over from an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the test's folder can be made");
    folder
}

fn command(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.env("XDG_STATE_HOME", state).env("TERM", "xterm").env_remove("NO_COLOR");
    command
}

fn prompt(state: &Path) -> PtySession {
    spawn_command(command(state), Some(WATCHDOG_MS)).expect("a pseudo-terminal opens")
}

/// The line editor writes this when it waits for keys: bracketed paste is switched on.
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
fn a_line_that_a_program_leaves_unfinished_is_ended() {
    let mut session = prompt(&state_folder("unfinished"));
    enter(&mut session, "(display \"unfinished\")");
    expect(&mut session, "unfinished\r\n");
    enter(&mut session, "(begin (display \"also\") 'value)");
    expect(&mut session, "also\r\nvalue\r\n");
    enter(&mut session, "(begin (display \"begun\") (car 'x))");
    expect(&mut session, "begun\r\n");
    enter(&mut session, "(begin (display \"whole\") (newline) 'next)");
    expect(&mut session, "whole\r\nnext\r\n");
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

#[test]
fn terminals_are_shown_colours_and_pairs() {
    let mut session = prompt(&state_folder("colours"));
    enter(&mut session, "(string-append \"1\" \"2\")");
    // While the line is typed, the pair is shown. The entered line shows no pair.
    expect(
        &mut session,
        "\x1b[1;4m(\x1b[0mstring-append \x1b[32m\"1\"\x1b[0m \x1b[32m\"2\"\x1b[0m\x1b[1;4m)\x1b[0m",
    );
    expect(&mut session, "(string-append \x1b[32m\"1\"\x1b[0m \x1b[32m\"2\"\x1b[0m)");
    expect(&mut session, "\x1b[32m\"12\"\x1b[0m\r\n");
    enter(&mut session, "(car 'x)");
    expect(&mut session, "\x1b[1;31m");
    expect(&mut session, "must be a pair");
    leave(session);
}

/// Whether the text contains a control sequence that sets a colour or style.
fn has_colours(screen: &str) -> bool {
    let is_parameter = |c: char| c.is_ascii_digit() || c == ';';
    screen.split("\x1b[").skip(1).any(|rest| rest.trim_start_matches(is_parameter).starts_with('m'))
}

#[test]
fn no_colours_are_shown_if_they_are_not_wanted() {
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")] {
        let mut command = command(&state_folder("no-colours"));
        command.env(name, value);
        let mut session = spawn_command(command, Some(WATCHDOG_MS)).expect("a terminal opens");
        let mut screen = session.exp_string("> ").expect("a prompt appears");
        session.send_line("(list \"1\" (+ 40 2))").expect("the terminal takes keys");
        screen += &session.exp_string("(\"1\" 42)").expect("the value is shown");
        session.send_line("(car 'x)").expect("the terminal takes keys");
        screen += &session.exp_string("must be a pair").expect("the error is shown");
        screen += &session.exp_string("> ").expect("a prompt appears");
        session.send_control('d').expect("the terminal takes Ctrl-D");
        screen += &session.exp_eof().expect("Ctrl-D leaves");
        assert!(!has_colours(&screen), "{name}={value}: {screen:?}");
    }
}

/// A prompt without colours, in a terminal with these settings of `stty`.
fn plain_prompt(state: &Path, settings: &str) -> PtySession {
    let mut command = command(state);
    let program = command.get_program().to_owned();
    command = {
        let mut shell = Command::new("sh");
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("NO_COLOR", "1").arg("-c").arg(format!("stty {settings} && exec \"$0\""));
        shell.arg(program);
        shell
    };
    spawn_command(command, Some(WATCHDOG_MS)).expect("a pseudo-terminal opens")
}

#[test]
fn a_wide_value_is_broken_into_lines() {
    let mut session = plain_prompt(&state_folder("wide"), "cols 40");
    enter(&mut session, "(iota 20)");
    expect(&mut session, "\r\n(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\r\n 16 17 18 19)\r\n");
    enter(&mut session, "'((alpha . 1) (beta . \"a string\") (gamma 3))");
    expect(&mut session, "\r\n((alpha . 1)\r\n (beta . \"a string\")\r\n (gamma 3))\r\n");
    leave(session);
}

#[test]
fn pasted_text_is_taken_as_it_is() {
    let mut session = prompt(&state_folder("paste"));
    // A tab in pasted text completes nothing, and all lines belong to one form.
    type_keys(&mut session, "\x1b[200~(define (pasted x)\n\t(* x 1001))\x1b[201~\r");
    enter(&mut session, "(pasted 7)");
    expect(&mut session, "7007");
    leave(session);
}

/// In a terminal without bracketed paste, pasted text arrives as keys, all at once.
#[test]
fn forms_that_are_pasted_as_keys_are_all_evaluated() {
    let mut session = plain_prompt(&state_folder("keys"), "cols 80");
    let defined: String = (0..200).map(|i| format!("(define x{i} {i})\r")).collect();
    type_keys(&mut session, &format!("{defined}(list 'sum (+ x0 x99 x199))\r"));
    expect(&mut session, "\r\n(sum 298)\r\n");
    type_keys(&mut session, "(define (f)\r  'one)\r(list (f) 'two) (list 'three)\r'(fo\rur)\r");
    expect(&mut session, "\r\n(one two)\r\n(three)\r\n");
    expect(&mut session, "\r\n(fo ur)\r\n");
    leave(session);
}

#[test]
fn forms_that_are_typed_while_another_runs_are_all_evaluated() {
    let state = state_folder("ahead");
    let go = state.join("go");
    // The terminal echoes what is typed while no line is edited.
    let mut session = plain_prompt(&state, "cols 80 echo");
    enter(
        &mut session,
        &format!(
            "(begin (display \"wait\") (display \"ing\") (flush-output-port) (let wait () (if (not (file-exists? {go:?})) (wait))) 'first)"
        ),
    );
    expect(&mut session, "waiting");
    session
        .send("(define ahead 20)\r(define more\r  22)\r(list 'it 'is (+ ahead more))\r")
        .unwrap();
    session.flush().expect("the terminal takes keys");
    // The echo shows that the terminal has received all of it.
    expect(&mut session, "ahead more))");
    std::fs::write(&go, "").expect("the test's folder can be written");
    expect(&mut session, "first\r\n");
    expect(&mut session, "\r\n(it is 42)\r\n");
    leave(session);
}

/// A program reads the input that was typed for it, not the forms after it.
#[test]
fn forms_that_are_typed_behind_a_programs_input_are_evaluated() {
    let mut session = plain_prompt(&state_folder("reads"), "cols 80");
    enter(
        &mut session,
        "(begin (display \"re\") (display \"ads\") (flush-output-port) (list 'got (read-line)))",
    );
    expect(&mut session, "reads");
    session.send("its line\r(list 'next (+ 40 2))\r").expect("the terminal takes keys");
    session.flush().expect("the terminal takes keys");
    expect(&mut session, "(got \"its line\")\r\n");
    expect(&mut session, "\r\n(next 42)\r\n");
    leave(session);
}

#[test]
fn what_failed_is_looked_at_and_gone_on_with() {
    let mut session = prompt(&state_folder("debugger"));
    enter(&mut session, "(define (inner x) (+ 1000 (missing x)))");
    enter(&mut session, "(define (outer y) (* 2 (inner (+ y 1))))");
    enter(&mut session, "(outer 20)");
    expect(&mut session, "unbound variable: missing");
    enter(&mut session, ",bt");
    expect(&mut session, "inner");
    expect(&mut session, "outer");
    enter(&mut session, ",locals 0");
    expect(&mut session, "21");
    enter(&mut session, ",use 22");
    expect(&mut session, "2044");
    enter(&mut session, "(outer 30)");
    expect(&mut session, "unbound variable: missing");
    enter(&mut session, "(define (missing x) (* x 3))");
    enter(&mut session, ",retry");
    expect(&mut session, "2186");
    leave(session);
}

#[test]
fn commands_calls_and_time_are_described() {
    let mut session = prompt(&state_folder("tools"));
    enter(&mut session, ",help");
    for word in [",bt", ",locals", ",use", ",retry", ",time", ",profile"] {
        expect(&mut session, word);
    }
    enter(&mut session, ",nonsense");
    expect(&mut session, "there is no command ,nonsense");
    enter(&mut session, "(define (step n) (if (= n 0) 'end (step (- n 1))))");
    enter(&mut session, "(trace step)");
    enter(&mut session, "(begin (step 1) 'traced)");
    expect(&mut session, "\r\n| (step 1)\r\n| | (step 0)\r\n| | => end\r\n| => end\r\n");
    expect(&mut session, "traced\r\n");
    enter(&mut session, "(untrace step)");
    enter(&mut session, ",time (step 100000)");
    expect(&mut session, "ms");
    enter(&mut session, ",profile (step 3000000)");
    expect(&mut session, "PROCEDURE\r\n");
    expect(&mut session, "step\r\n");
    leave(session);
}

/// A running procedure is defined again: later calls by its name use the new definition.
#[test]
fn running_code_is_defined_anew() {
    let mut session = prompt(&state_folder("anew"));
    enter(&mut session, "(define (answer) 'old)");
    enter(&mut session, "(define heard '())");
    enter(
        &mut session,
        "(define t (spawn (lambda () (let loop () (set! heard (answer)) (thread-yield!) (if (not (eq? heard 'new)) (loop))))))",
    );
    enter(&mut session, "(define (answer) 'new)");
    enter(&mut session, "(begin (thread-join! t) (list 'it 'heard heard))");
    expect(&mut session, "(it heard new)");
    leave(session);
}

#[test]
fn a_world_is_saved_at_a_prompt_and_is_there_at_another() {
    let state = state_folder("world");
    let image = state.join("world.image");
    let mut session = prompt(&state);
    enter(&mut session, "(define (thrice x) (* 3 x))");
    enter(&mut session, &format!("(begin (save-image {image:?}) 'is-saved)"));
    expect(&mut session, "\r\nis-saved\r\n");
    leave(session);
    let mut command = command(&state);
    command.arg("--image").arg(&image);
    let mut session = spawn_command(command, Some(WATCHDOG_MS)).expect("a terminal opens");
    enter(&mut session, "(thrice 1111)");
    expect(&mut session, "3333");
    leave(session);
}
