//! How instances of `kyocho unix` end: with all their processes, whoever ends first.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/attackers.rs"]
mod attackers;
#[path = "unix/support.rs"]
mod support;

use attackers::attackers;
use core::time::Duration;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use support::{inside, is_permitted, output_of};

/// What waits longer than this for a condition waits for ever.
const WATCHDOG: Duration = Duration::from_secs(120);

/// An instance with processes that will not end, and its output, which they all hold.
struct Stubborn {
    command: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Stubborn {
    /// Waits until all are there.
    fn start() -> Self {
        let mut command = inside(&[attackers(), "stay"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = command.spawn().unwrap();
        let mut output = BufReader::new(command.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { command, output }
    }

    /// Waits until nobody is left: status of the command, what it complained of.
    fn end(self) -> (ExitStatus, String) {
        let Self { mut command, mut output } = self;
        let (tell, told) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            let mut rest = Vec::new();
            output.read_to_end(&mut rest).unwrap();
            tell.send(()).unwrap();
        });
        told.recv_timeout(WATCHDOG).expect("nobody holds standard output any more");
        waiting.join().unwrap();
        let mut complaint = String::new();
        command.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        (command.wait().unwrap(), complaint)
    }
}

fn kill(target: &str) {
    assert!(Command::new("kill").args(["-KILL", "--", target]).status().unwrap().success());
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

#[test]
fn a_server_that_is_killed_takes_its_clients_with_it() {
    if !is_permitted("a_server_that_is_killed_takes_its_clients_with_it") {
        return;
    }
    let instance = Stubborn::start();
    let server = instance.command.id();
    kill(&server.to_string());
    let (_, complaint) = instance.end();
    assert_eq!(complaint, "kyocho unix: the server was killed; what ran under it is ended\n");
    let folder = format!("/dev/shm/kyocho-unix-{server}");
    assert!(!std::path::Path::new(&folder).exists(), "{folder} is left behind");
}

#[test]
fn a_warden_that_is_killed_takes_the_instance_with_it() {
    if !is_permitted("a_warden_that_is_killed_takes_the_instance_with_it") {
        return;
    }
    let instance = Stubborn::start();
    kill(&only_child(instance.command.id()).to_string());
    let (status, complaint) = instance.end();
    assert_eq!(status.code(), Some(125));
    assert_eq!(complaint, "kyocho unix: the warden was killed; what ran under it is ended\n");
}

#[test]
fn processes_that_will_not_end_do_when_the_first_has() {
    if !is_permitted("processes_that_will_not_end_do_when_the_first_has") {
        return;
    }
    // All of them hold the output, which has ended where this returns.
    let (status, text) = output_of(&mut inside(&[attackers(), "outlive"]));
    assert_eq!((status, text.as_str()), (Some(0), "held\n"));
}

#[test]
fn what_the_first_program_leaves_running_is_ended() {
    if !is_permitted("what_the_first_program_leaves_running_is_ended") {
        return;
    }
    let (status, text) =
        output_of(&mut inside(&["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]));
    assert_eq!(status, Some(0));
    let left: u32 = text.trim().parse().unwrap();
    // Its number is free once somebody has taken its status.
    let (start, entry) = (std::time::Instant::now(), format!("/proc/{left}"));
    while std::path::Path::new(&entry).exists() {
        assert!(start.elapsed() < WATCHDOG, "{left} runs on");
        std::thread::yield_now();
    }
}

#[test]
fn a_signal_to_the_command_reaches_the_program() {
    if !is_permitted("a_signal_to_the_command_reaches_the_program") {
        return;
    }
    // What a terminal would send to all is left to the program; what is sent to the command is passed on.
    let script = "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let mut command = inside(&["sh", "-c", script]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    for signal in ["-INT", "-TERM"] {
        let told = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(told.unwrap().success());
    }
    assert_eq!(lines.next().unwrap().unwrap(), "told");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_program_that_stops_stops_the_command() {
    if !is_permitted("a_program_that_stops_stops_the_command") {
        return;
    }
    let mut command = inside(&["sh", "-c", "kill -STOP $$; echo on"]);
    let mut command = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", command.id());
    let start = std::time::Instant::now();
    while !std::fs::read_to_string(&status).unwrap().contains("State:\tT") {
        assert!(start.elapsed() < WATCHDOG, "the command runs on");
        std::thread::yield_now();
    }
    let told = Command::new("kill").args(["-CONT", &command.id().to_string()]).status();
    assert!(told.unwrap().success());
    let mut text = String::new();
    command.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((command.wait().unwrap().code(), text.as_str()), (Some(0), "on\n"));
}
