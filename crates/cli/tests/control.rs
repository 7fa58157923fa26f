//! Listing and controlling microprocesses of other processes: `ps`, `kill`, `top`, `trace`, gdb.

use core::time::Duration;
use rexpect::session::spawn_command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

/// Ends a test that hangs.
const WATCHDOG: Duration = Duration::from_secs(60);

/// The folder of this test's control sockets, which no other process uses.
struct ControlFolder(PathBuf);

impl ControlFolder {
    fn new(name: &str) -> Self {
        use std::os::unix::fs::DirBuilderExt;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("control-{name}"));
        // Left over from an earlier run.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::DirBuilder::new().mode(0o700).create(&folder).expect("the folder can be made");
        Self(folder)
    }

    fn kyocho(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        command.args(arguments).env("KYOCHO_DIR", &self.0).env("TERM", "xterm");
        command
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        self.kyocho(arguments).output().expect("kyocho starts")
    }

    /// Runs a Scheme program in the background.
    fn run(&self, source: &str) -> Running {
        let path = self.0.join("program.scm");
        std::fs::write(&path, source).expect("the folder can be written");
        let mut command = self.kyocho(&["run"]);
        let child = command.arg(path).stdout(Stdio::piped()).spawn().expect("kyocho starts");
        Running(child)
    }

    /// The microprocesses of all processes, as `ps --json` prints them.
    fn list(&self) -> Vec<Value> {
        let output = self.ask(&["ps", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let spaces: Value = serde_json::from_slice(&output.stdout).expect("ps prints JSON");
        let spaces = spaces.as_array().expect("an array").iter();
        spaces
            .flat_map(|space| space["microprocesses"].as_array().cloned().unwrap_or_default())
            .collect()
    }

    /// Waits until a microprocess called `name` is as `wanted`. Returns its global id.
    fn await_one(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> String {
        let start = Instant::now();
        loop {
            let all = self.list();
            if let Some(found) = all.iter().find(|it| it["name"] == name && wanted(it)) {
                return found["id"].as_str().expect("an id").to_owned();
            }
            assert!(start.elapsed() < WATCHDOG, "{name} never is as wanted: {all:?}");
        }
    }

    fn await_end(&self, name: &str) {
        let start = Instant::now();
        while self.list().iter().any(|it| it["name"] == name) {
            assert!(start.elapsed() < WATCHDOG, "{name} does not end");
        }
    }
}

/// A process that is killed when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Threads in several states. `main` waits for one that is killed, and reports how it ended.
const PROGRAM: &str = "
(import (scheme base) (scheme write) (srfi 18))
(define (start name thunk) (thread-start! (make-thread thunk name)))
(define held (make-mutex))
(mutex-lock! held)
(define sleeper (start 'sleeper (lambda () (thread-sleep! 10000))))
(define looper (start 'looper (lambda () (let loop () (loop)))))
(define waiter (start 'waiter (lambda () (mutex-lock! held))))
(define victim
  (start 'victim
    (lambda ()
      (dynamic-wind (lambda () #f)
                    (lambda () (thread-sleep! 10000))
                    (lambda () (display \"unwound \") (flush-output-port))))))
(guard (e ((terminated-thread-exception? e) (display \"victim was killed\") (newline)))
  (thread-join! victim))
(thread-join! sleeper)
";

#[test]
fn threads_of_a_program_are_listed_by_name_and_obey() {
    let place = ControlFolder::new("orders");
    let program = place.run(PROGRAM);
    let process = program.0.id();
    let waiting = |it: &Value| it["status"] == "waiting";
    let victim = place.await_one("victim", waiting);
    assert!(victim.starts_with(&format!("{process}:")), "{victim}");
    let looper = place.await_one("looper", |it| it["cpu_ns"].as_u64() > Some(0));
    place.await_one("waiter", waiting);
    place.await_one("gc", waiting);

    let table = text(&place.ask(&["ps", &process.to_string()]).stdout);
    assert!(table.lines().next().is_some_and(|line| line.starts_with("ID")), "{table}");
    assert!(table.contains("victim") && table.contains("an unpark"), "{table}");

    assert!(place.ask(&["suspend", &looper]).status.success());
    place.await_one("looper", |it| it["status"] == "suspended");
    assert!(place.ask(&["resume", &looper]).status.success());
    place.await_one("looper", |it| it["status"] != "suspended");
    assert!(place.ask(&["priority", &looper, "7"]).status.success());
    place.await_one("looper", |it| it["priority"] == 7);

    assert!(place.ask(&["kill", &victim, &looper]).status.success());
    place.await_end("victim");
    place.await_end("looper");
    let gone = place.ask(&["kill", &victim]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stderr).contains(&victim) && text(&gone.stderr).contains("has ended"));

    let sleeper = place.await_one("sleeper", |_| true);
    // The program ends with this thread, perhaps before it has answered.
    let _answered = place.ask(&["kill", &sleeper]);
    let mut program = program;
    let mut said = String::new();
    let out = program.0.stdout.as_mut().expect("standard output is piped");
    std::io::Read::read_to_string(out, &mut said).expect("the program ends");
    assert_eq!(said, "unwound victim was killed\n");
}

#[test]
fn counters_are_text_for_prometheus() {
    let place = ControlFolder::new("prometheus");
    let program = place.run(PROGRAM);
    place.await_one("victim", |_| true);
    let metrics = text(&place.ask(&["ps", "--prometheus"]).stdout);
    let process = program.0.id();
    assert!(metrics.contains("# TYPE kyocho_switches_total counter"), "{metrics}");
    assert!(
        metrics.contains(&format!("kyocho_spawned_total{{pid=\"{process}\",vp=\"0\"}}")),
        "{metrics}"
    );
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(value.parse::<u64>().is_ok(), "{line}");
    }
}

#[test]
fn what_cannot_be_done_is_reported() {
    let place = ControlFolder::new("errors");
    let none = place.ask(&["ps"]);
    assert!(none.status.success() && text(&none.stderr).contains("KYOCHO_CONTROL=1"));
    let absent = place.ask(&["ps", "1"]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(text(&absent.stderr).contains("process 1 serves no control socket"));
    assert_eq!(place.ask(&["kill", "12"]).status.code(), Some(2));
    assert_eq!(place.ask(&["priority", "1:2", "64"]).status.code(), Some(2));
    assert_eq!(place.ask(&["trace", "--seconds", "0"]).status.code(), Some(2));
    let no_terminal = place.ask(&["top"]);
    assert_eq!(no_terminal.status.code(), Some(2));
    assert!(text(&no_terminal.stderr).contains("needs a terminal"));
    // The socket of a killed process is removed by the next process that tries to connect.
    let dead = place.0.join("999999999.sock");
    drop(std::os::unix::net::UnixListener::bind(&dead).expect("a socket can be made"));
    assert!(place.ask(&["ps"]).status.success());
    assert!(!dead.exists());
}

#[test]
fn top_shows_and_kills() {
    let place = ControlFolder::new("top");
    let program = place.run(PROGRAM);
    let victim = place.await_one("victim", |it| it["status"] == "waiting");
    // A pseudo-terminal has no size unless one is set.
    let mut command = Command::new("sh");
    let start = concat!("stty rows 24 cols 80; exec ", env!("CARGO_BIN_EXE_kyocho"), " top");
    command.args(["-c", start]).env("KYOCHO_DIR", &place.0).env("TERM", "xterm");
    let watchdog = Some(WATCHDOG.as_millis() as u64);
    let mut top = spawn_command(command, watchdog).expect("a pseudo-terminal opens");
    let expect = |session: &mut rexpect::session::PtySession, text: &str| {
        session.exp_string(text).unwrap_or_else(|error| panic!("waited for {text:?}: {error}"));
    };
    expect(&mut top, "microprocesses:");
    let keys = |session: &mut rexpect::session::PtySession, keys: &str| {
        session.send(keys).expect("the terminal takes keys");
        session.flush().expect("the terminal takes keys");
    };
    keys(&mut top, "/victim\r");
    expect(&mut top, "victim");
    keys(&mut top, "K");
    expect(&mut top, "(y/n)");
    keys(&mut top, "y");
    expect(&mut top, "done");
    place.await_end("victim");
    assert!(!place.list().iter().any(|it| it["id"] == victim.as_str()));
    keys(&mut top, "q");
    top.exp_eof().expect("q leaves");
    drop(program);
}

#[test]
fn a_running_process_and_a_program_are_traced() {
    let place = ControlFolder::new("trace");
    let program = place.run(PROGRAM);
    place.await_one("looper", |_| true);
    let file = place.0.join("running.json");
    let process = program.0.id().to_string();
    let path = file.to_str().expect("a path of this test");
    let traced = place.ask(&["trace", "--seconds", "0.2", "-o", path, &process]);
    assert!(traced.status.success(), "{}", text(&traced.stderr));
    assert!(spans(&file).iter().any(|name| name == "looper"));
    drop(program);

    let source = place.0.join("short.scm");
    let threads = "(import (scheme base) (srfi 18))
        (for-each thread-join! (map (lambda (n) (thread-start! (make-thread thread-yield! n)))
                                    '(ping pong)))";
    std::fs::write(&source, threads).expect("the folder can be written");
    let file = place.0.join("program.json");
    let mut command = place.kyocho(&["trace", "-o"]);
    command.arg(&file).arg("--").arg(env!("CARGO_BIN_EXE_kyocho")).arg("run").arg(source);
    let traced = command.output().expect("kyocho starts");
    assert!(traced.status.success(), "{}", text(&traced.stderr));
    let names = spans(&file);
    assert!(names.iter().any(|name| name == "ping") && names.iter().any(|name| name == "pong"));
}

/// The names of microprocesses that ran, in a timeline.
fn spans(file: &Path) -> Vec<String> {
    let text = std::fs::read(file).expect("the timeline is there");
    let timeline: Value = serde_json::from_slice(&text).expect("a timeline is JSON");
    let events = timeline["traceEvents"].as_array().expect("a timeline has events").iter();
    let spans = events.filter(|event| event["ph"] == "X");
    spans.filter_map(|span| span["name"].as_str().map(str::to_owned)).collect()
}

/// Runs gdb with `commands` on `target`. Returns its output.
fn gdb(commands: &[&str], target: &[&str]) -> String {
    let script = concat!("source ", env!("CARGO_MANIFEST_DIR"), "/../../scripts/gdb/kyocho.py");
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "set pagination off"]).args(target);
    gdb.args(["-ex", script, "-ex", "info microprocesses"]);
    gdb.args(commands.iter().flat_map(|command| ["-ex", command]));
    let output = gdb.output().expect("gdb starts");
    text(&output.stdout) + &text(&output.stderr)
}

/// Checks a listing, and the backtrace of the collector's thread.
fn check_gdb(said: &str) {
    for name in ["gc", "victim", "sleeper", "looper"] {
        assert!(said.contains(name), "{name} is missing:\n{said}");
    }
    // The collector waits for work. Its stack leads from the switch to its loop, and ends at the
    // trampoline.
    for frame in ["crates/lisp/src/kernel/service.rs", "kyocho_trampoline"] {
        assert!(said.contains(frame), "{frame} is missing:\n{said}");
    }
}

/// Whether gdb is installed and may attach. Otherwise reports the test as skipped.
fn has_gdb(test: &str) -> bool {
    let here = Command::new("gdb").arg("--version").output().is_ok();
    if !here {
        kyocho_sys::skip::skip(test, "gdb is not installed");
    }
    here
}

#[test]
fn gdb_lists_microprocesses_and_walks_their_stacks() {
    let test = "gdb_lists_microprocesses_and_walks_their_stacks";
    if !has_gdb(test) {
        return;
    }
    let place = ControlFolder::new("gdb");
    let program = place.run(PROGRAM);
    let gc = place.await_one("gc", |it| it["status"] == "waiting");
    place.await_one("victim", |it| it["status"] == "waiting");
    let one = gc.replacen(':', " ", 1).split(' ').nth(1).map(|id| format!("microprocess {id} bt"));
    let commands = [&one.expect("an id"), "microprocess apply all bt"];
    let said = gdb(&commands, &["-p", &program.0.id().to_string()]);
    if said.contains("ptrace: Operation not permitted") {
        return kyocho_sys::skip::skip(test, "gdb may not attach to other processes here");
    }
    check_gdb(&said);
    assert!(said.contains("on kernel thread"), "the loop runs on one:\n{said}");
}

#[test]
fn gdb_walks_the_stacks_in_a_core() {
    let test = "gdb_walks_the_stacks_in_a_core";
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !has_gdb(test) {
        return;
    }
    if pattern.trim() != "core" {
        return kyocho_sys::skip::skip(test, "the host does not leave cores where processes run");
    }
    let place = ControlFolder::new("core");
    let source = place.0.join("program.scm");
    std::fs::write(&source, PROGRAM).expect("the folder can be written");
    let start =
        concat!("ulimit -c unlimited; exec ", env!("CARGO_BIN_EXE_kyocho"), " run program.scm");
    let mut command = Command::new("sh");
    command.args(["-c", start]).current_dir(&place.0).env("KYOCHO_DIR", &place.0);
    let mut program = Running(command.stdout(Stdio::null()).spawn().expect("a shell starts"));
    place.await_one("victim", |it| it["status"] == "waiting");
    let process = program.0.id().to_string();
    assert!(
        Command::new("kill").args(["-ABRT", &process]).status().expect("kill starts").success()
    );
    drop(program.0.wait());
    let found = ["core".to_owned(), format!("core.{process}")].map(|name| place.0.join(name));
    let Some(core) = found.iter().find(|core| core.exists()) else {
        return kyocho_sys::skip::skip(test, "the host left no core");
    };
    let said = gdb(
        &["microprocess apply all bt"],
        &[env!("CARGO_BIN_EXE_kyocho"), core.to_str().expect("a path")],
    );
    // The file is sparse, but as long as the address space.
    let _removed = std::fs::remove_file(core);
    check_gdb(&said);
}
