//! How instances of `kyocho unix` end: with all their processes, whichever process ends first.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/compiled.rs"]
mod compiled;
#[path = "unix/support.rs"]
mod support;

use compiled::compiled;
use core::time::Duration;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use support::{Folder, inside, is_permitted, output_of};

/// Ends a test that hangs.
const WATCHDOG: Duration = Duration::from_secs(120);

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WATCHDOG, "never: {what}");
        std::thread::yield_now();
    }
}

fn has_stopped(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/status")).unwrap().contains("State:\tT")
}

/// An instance in a process group of its own. If a stopped process is in an orphaned group, the
/// host sends SIGHUP to the whole group, which would include the test runner.
fn apart(program: &[&str]) -> Command {
    let mut command = inside(program);
    command.process_group(0);
    command
}

/// An instance with processes that ignore signals, and its output, which all of them keep open.
struct Stubborn {
    command: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Stubborn {
    /// Waits until all processes are there.
    fn start() -> Self {
        let mut command = apart(&[compiled("attackers", &[]), "stay"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = command.spawn().unwrap();
        let mut output = BufReader::new(command.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { command, output }
    }

    /// Waits until no process is left. Returns the command's status, and what it printed on
    /// standard error.
    fn end(self) -> (ExitStatus, String) {
        let Self { mut command, mut output } = self;
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            let mut rest = Vec::new();
            output.read_to_end(&mut rest).unwrap();
            sender.send(()).unwrap();
        });
        receiver.recv_timeout(WATCHDOG).expect("no process holds standard output any more");
        waiting.join().unwrap();
        let mut complaint = String::new();
        command.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        (command.wait().unwrap(), complaint)
    }
}

fn signal(name: &str, targets: &[u32]) {
    let targets = targets.iter().map(u32::to_string);
    assert!(Command::new("kill").arg(name).args(targets).status().unwrap().success());
}

/// Kills all of them before any can react to another's end. A process that would end another one
/// comes last, and a parent after its child: when a parent ends, the host continues its stopped
/// children.
fn kill(targets: &[u32]) {
    signal("-STOP", targets);
    wait_until("all have stopped", || targets.iter().all(|target| has_stopped(*target)));
    signal("-KILL", targets);
}

/// The only child of process `parent`.
fn only_child(parent: u32) -> u32 {
    let children = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let behind = text.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        (behind.parse::<u32>().ok()? == parent).then_some(number)
    });
    let children: Vec<u32> = children.collect();
    assert_eq!(children.len(), 1, "{children:?}");
    children[0]
}

/// Kills each set of command, server and warden at once. No process stays, no file is left, and one
/// line says which process was killed.
#[test]
fn an_instance_ends_with_any_of_its_processes() {
    if !is_permitted("an_instance_ends_with_any_of_its_processes") {
        return;
    }
    const COMMAND: usize = 0;
    const SERVER: usize = 1;
    const WARDEN: usize = 2;
    for (killed, missed, status) in [
        (&[SERVER][..], "the server was killed; its programs were", Some(125)),
        (&[WARDEN], "the warden was killed; its programs were", Some(125)),
        (&[COMMAND], "the command was killed; its programs were", None),
        (&[WARDEN, SERVER], "the server was killed; its programs were", Some(125)),
        (&[SERVER, COMMAND], "command and server were killed; their programs were", None),
        (&[COMMAND, WARDEN], "the command was killed; its programs were", None),
    ] {
        let instance = Stubborn::start();
        let command = instance.command.id();
        let folders = folders_of(command);
        let server = only_child(command);
        let all = [command, server, only_child(server)];
        let targets: Vec<u32> = killed.iter().map(|who| all[*who]).collect();
        kill(&targets);
        let (ended, complaint) = instance.end();
        assert_eq!(complaint, format!("kyocho unix: {missed} ended\n"), "{killed:?}");
        assert_eq!(ended.code(), status, "{killed:?}");
        assert_eq!(folders_of(command) + 1, folders, "{killed:?}: a folder is left behind");
    }
}

/// Kills the warden, and the command after the server has sent it the last report. The command is
/// stopped, so it does not receive that report.
#[test]
fn a_command_killed_before_it_hears_the_last_report_leaves_nothing() {
    if !is_permitted("a_command_killed_before_it_hears_the_last_report_leaves_nothing") {
        return;
    }
    let instance = Stubborn::start();
    let command = instance.command.id();
    let folders = folders_of(command);
    let server = only_child(command);
    let warden = only_child(server);
    signal("-STOP", &[command]);
    wait_until("the command has stopped", || has_stopped(command));
    signal("-KILL", &[warden]);
    // The server takes the warden's status before it sends the report.
    let warden = format!("/proc/{warden}");
    wait_until("the server noticed it", || !std::path::Path::new(&warden).exists());
    wait_until("the server waits, or has ended", || {
        let state = std::fs::read_to_string(format!("/proc/{server}/status")).unwrap();
        state.contains("State:\tZ") || waits_for_a_message(server)
    });
    signal("-KILL", &[command]);
    let (ended, complaint) = instance.end();
    let expected = "kyocho unix: the command was killed; its programs were ended\n";
    assert_eq!(complaint, expected);
    assert_eq!(ended.code(), None);
    assert_eq!(folders_of(command) + 1, folders, "a folder is left behind");
}

/// Whether a kernel thread of `process` is in a receiving system call; true where the host does not
/// say.
fn waits_for_a_message(process: u32) -> bool {
    const RECVMSG: &str = if cfg!(target_arch = "aarch64") { "212 " } else { "47 " };
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let calls = threads.map(|thread| std::fs::read_to_string(thread.path().join("syscall")));
    let calls: Vec<String> = calls.filter_map(Result::ok).collect();
    calls.is_empty() || calls.iter().any(|call| call.starts_with(RECVMSG))
}

/// Number of folders for shared memory of commands with this number: its own, and those of earlier
/// ones that were killed completely.
fn folders_of(command: u32) -> usize {
    let own = format!("kyocho-unix-{command}");
    let is_one = |name: &str| name == own || name.starts_with(&format!("{own}-"));
    let entries = std::fs::read_dir("/dev/shm").unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_one)).count()
}

#[test]
fn the_first_program_ends_if_all_three_are_killed() {
    if !is_permitted("the_first_program_ends_if_all_three_are_killed") {
        return;
    }
    let mut command = apart(&["sh", "-c", "echo ready; exec sleep 1000"]);
    let mut command = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(command.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let server = only_child(command.id());
    kill(&[only_child(server), server, command.id()]);
    command.wait().unwrap();
    // The killed process held the other end.
    let (sender, receiver) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || sender.send(output.read(&mut [0]).unwrap()).unwrap());
    assert_eq!(receiver.recv_timeout(WATCHDOG), Ok(0), "the program lives on");
    reading.join().unwrap();
    // No process was left to remove it.
    let _ = std::fs::remove_dir_all(format!("/dev/shm/kyocho-unix-{}", command.id()));
}

#[test]
fn processes_that_ignore_signals_end_with_the_first() {
    if !is_permitted("processes_that_ignore_signals_end_with_the_first") {
        return;
    }
    // All of them hold the output, so it ends when the last one has ended.
    let (status, text) = output_of(&mut apart(&[compiled("attackers", &[]), "outlive"]));
    assert_eq!((status, text.as_str()), (Some(0), "held\n"));
}

#[test]
fn what_the_first_program_leaves_running_is_ended() {
    if !is_permitted("what_the_first_program_leaves_running_is_ended") {
        return;
    }
    let (status, text) =
        output_of(&mut apart(&["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]));
    assert_eq!(status, Some(0));
    let left: u32 = text.trim().parse().unwrap();
    // The number is free once a parent has waited for the process.
    let entry = format!("/proc/{left}");
    wait_until("no process has its number", || !std::path::Path::new(&entry).exists());
}

#[test]
fn a_signal_to_the_command_reaches_the_program() {
    if !is_permitted("a_signal_to_the_command_reaches_the_program") {
        return;
    }
    // A signal that a terminal would send to all processes is left to the program. One sent to the
    // command is passed on.
    let script = "trap 'echo told; exit 5' TERM; trap 'echo asked' USR1; echo ready; while :; do sleep 0.01; done";
    let mut command = apart(&["sh", "-c", script]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    signal("-INT", &[child.id()]);
    signal("-USR1", &[child.id()]);
    assert_eq!(lines.next().unwrap().unwrap(), "asked");
    // As a service manager signals every process of a service: server and warden survive it.
    let server = only_child(child.id());
    signal("-TERM", &[server, only_child(server), child.id()]);
    assert_eq!(lines.next().unwrap().unwrap(), "told");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_program_that_stops_stops_the_command() {
    if !is_permitted("a_program_that_stops_stops_the_command") {
        return;
    }
    let mut command = apart(&["sh", "-c", "kill -STOP $$; echo on"]);
    let mut command = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the command stops", || has_stopped(command.id()));
    signal("-CONT", &[command.id()]);
    let mut text = String::new();
    command.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((command.wait().unwrap().code(), text.as_str()), (Some(0), "on\n"));
}

#[test]
fn a_stopped_command_serves_running_processes() {
    if !is_permitted("a_stopped_command_serves_running_processes") {
        return;
    }
    let folder = Folder::new();
    // Opens a file, which is a served call, after the command has stopped.
    let script = "(while ! test -e asked; do sleep 0.01; done; echo > served) & kill -STOP $$; wait; echo on";
    let mut command = apart(&["sh", "-c", script]);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut command = command.spawn().unwrap();
    wait_until("the command stops", || has_stopped(command.id()));
    std::fs::write(folder.path().join("asked"), "").unwrap();
    wait_until("the file is made", || folder.path().join("served").exists());
    assert!(has_stopped(command.id()));
    signal("-CONT", &[command.id()]);
    let mut text = String::new();
    command.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((command.wait().unwrap().code(), text.as_str()), (Some(0), "on\n"));
}
