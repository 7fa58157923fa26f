//! `kyocho unix` at a terminal: an interactive shell inside behaves as outside, and a shell outside
//! controls it as a job.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/support.rs"]
mod support;

use rexpect::session::{PtySession, spawn_command};
use rustix::termios::Winsize;
use std::process::Command;
use support::{inside, is_installed, is_permitted};

/// Ends a test that hangs.
const WATCHDOG_MS: u64 = 60_000;
/// A prompt that occurs in no output.
const PROMPT: &str = "%prompt%";
/// A shell that reads no settings of the user.
const SHELL: [&str; 4] = ["bash", "--norc", "--noprofile", "-i"];

/// A shell on a pseudo-terminal.
struct Shell(PtySession);

impl Shell {
    fn start(mut command: Command) -> Self {
        command.env("PS1", PROMPT).env("TERM", "dumb").env_remove("HISTFILE");
        let mut shell = Self(spawn_command(command, Some(WATCHDOG_MS)).unwrap());
        shell.expect(PROMPT);
        shell
    }

    fn expect(&mut self, text: &str) {
        if let Err(error) = self.0.exp_string(text) {
            panic!("waited for {text:?}: {error}");
        }
    }

    fn keys(&mut self, keys: &str) {
        self.0.send(keys).unwrap();
        self.0.flush().unwrap();
    }

    /// Types a line. The output must contain `answers` in this order, followed by the prompt.
    fn line(&mut self, line: &str, answers: &[&str]) {
        self.keys(&format!("{line}\r"));
        for answer in answers {
            self.expect(answer);
        }
        self.expect(PROMPT);
    }

    fn control(&mut self, key: char) {
        self.0.send_control(key).unwrap();
    }

    fn leave(mut self) {
        self.keys("exit\r");
        self.0.exp_eof().unwrap();
    }
}

/// Whether a test that needs `bash` can run.
fn is_possible(test: &str) -> bool {
    is_permitted(test) && is_installed(test, "bash")
}

#[test]
fn lines_are_edited_and_remembered() {
    if !is_possible("lines_are_edited_and_remembered") {
        return;
    }
    let mut shell = Shell::start(inside(&SHELL));
    // A wrong letter and the key that deletes it; then a key that moves to the start of the line,
    // and a word.
    shell.line("ecX\x7fho =$((40+2))", &["=42"]);
    shell.line("$((6*8))\x01echo =", &["=48"]);
    // The previous line, with one more letter.
    shell.line("\x1b[A1", &["=481"]);
    shell.leave();
}

#[test]
fn keys_interrupt_stop_and_continue_jobs_inside() {
    if !is_possible("keys_interrupt_stop_and_continue_jobs_inside") {
        return;
    }
    let mut shell = Shell::start(inside(&SHELL));
    // A program that prints a line when it runs.
    let job = "sh -c 'echo run''ning; exec sleep 1000'";
    shell.keys(&format!("{job}\r"));
    shell.expect("running");
    shell.control('c');
    shell.expect(PROMPT);
    shell.line("echo =$?", &["=130"]);
    shell.keys("sh -c 'echo run''ning; exec sed -u s/mine/yo''urs/'\r");
    shell.expect("running");
    shell.control('z');
    shell.expect("Stopped");
    shell.expect(PROMPT);
    shell.line("echo =$?", &["=148"]);
    shell.keys("fg\r");
    shell.expect("exec sed");
    // The shell prints this before it makes the job the foreground job, so a key could still go to
    // the shell, also outside. The job's answer shows that it reads the terminal.
    shell.keys("mine\r");
    shell.expect("yours");
    shell.control('c');
    shell.expect(PROMPT);
    shell.line("sleep 1000 & jobs", &["Running"]);
    shell.line("kill %1; wait; jobs; echo none", &["none"]);
    shell.leave();
}

#[test]
fn terminals_have_a_size_and_modes() {
    if !is_possible("terminals_have_a_size_and_modes") {
        return;
    }
    let mut shell = Shell::start(inside(&SHELL));
    shell.line("trap 'echo other''wise' WINCH; stty size; tty", &["/dev/pts/"]);
    let size = Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = shell.0.process().get_file_handle().unwrap();
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    // The shell learns the new size at the latest after it has run a command.
    shell.line("stty size", &["33 99"]);
    // One byte, without a line end.
    shell.keys("stty raw -echo; echo re''ady; dd bs=1 count=1 2>/dev/null | od -c; stty sane\r");
    shell.expect("ready");
    shell.keys("Q");
    shell.expect("Q");
    shell.expect(PROMPT);
    shell.line("stty -a | grep -o ' icanon'", &[" icanon"]);
    shell.leave();
}

#[test]
fn a_shell_outside_stops_and_continues_the_command() {
    if !is_possible("a_shell_outside_stops_and_continues_the_command") {
        return;
    }
    let mut command = Command::new(SHELL[0]);
    command.args(&SHELL[1..]);
    let mut shell = Shell::start(command);
    let program = env!("CARGO_BIN_EXE_kyocho");
    shell.keys(&format!("{program} unix -- sh -c 'echo run''ning; exec cat'\r"));
    shell.expect("running");
    shell.control('z');
    shell.expect("Stopped");
    shell.expect(PROMPT);
    shell.keys("fg\r");
    shell.expect("exec cat'");
    shell.keys("there and back\r");
    // The program's answer: this terminal does not echo.
    shell.expect("there and back");
    shell.control('d');
    shell.expect(PROMPT);
    shell.line("echo =$?", &["=0"]);
    shell.leave();
}
