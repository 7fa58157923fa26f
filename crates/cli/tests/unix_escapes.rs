//! Attempts to escape from `kyocho unix`, each by a program inside.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/compiled.rs"]
mod compiled;
#[path = "unix/support.rs"]
mod support;

use compiled::compiled;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use support::{Folder, inside, is_permitted, output_of};

/// An attack must print `held` and exit normally.
fn held(command: &mut Command) {
    let (status, text) =
        output_of(command.env("KYOCHO_TEST_PARENT", std::process::id().to_string()));
    assert_eq!((status, text.as_str()), (Some(0), "held\n"));
}

fn escapes() -> &'static str {
    compiled("escapes", &[])
}

#[test]
fn no_hint_and_no_want_of_room_maps_below_the_guard() {
    if !is_permitted("no_hint_and_no_want_of_room_maps_below_the_guard") {
        return;
    }
    held(&mut inside(&[escapes(), "below-guard"]));
}

#[test]
fn a_running_program_cannot_be_written_and_can_be_replaced() {
    if !is_permitted("a_running_program_cannot_be_written_and_can_be_replaced") {
        return;
    }
    // Natively and inside.
    for within in [false, true] {
        let folder = Folder::new();
        let program = folder.path().join("program");
        let program = program.to_str().unwrap();
        // Copied by another process. Otherwise a program started by another test could inherit the
        // descriptor that writes to the copy, and the copy would be busy.
        assert!(Command::new("cp").args([escapes(), program]).status().unwrap().success());
        let mut command = if within { inside(&[program]) } else { Command::new(program) };
        held(command.arg("own-program"));
        assert_eq!(std::fs::read(program).unwrap(), std::fs::read(escapes()).unwrap());
    }
}

#[test]
fn numbers_of_other_processes_reveal_nothing() {
    if !is_permitted("numbers_of_other_processes_reveal_nothing") {
        return;
    }
    held(&mut inside(&[escapes(), "strangers-numbers"]));
}

#[test]
fn the_number_of_a_thread_reaches_the_callers_own() {
    if !is_permitted("the_number_of_a_thread_reaches_the_callers_own") {
        return;
    }
    held(&mut inside(&[escapes(), "threads"]));
}

#[test]
fn segments_of_an_instance_have_a_limit_together() {
    if !is_permitted("segments_of_an_instance_have_a_limit_together") {
        return;
    }
    held(&mut inside(&["--memory", "64", "--", escapes(), "segments"]));
}

#[test]
fn the_loopback_network_cannot_be_left() {
    if !is_permitted("the_loopback_network_cannot_be_left") {
        return;
    }
    let network = compiled("network", &[]);
    for attack in [&["undone"][..], &["scopes"], &["options"], &["kinds", "loopback"]] {
        held(inside(&["--net", "loopback", "--", network]).args(attack));
    }
    held(&mut inside(&["--net", "host", "--", network, "kinds"]));
}

#[test]
fn the_hosts_own_files_of_processes_are_in_no_mount() {
    if !is_permitted("the_hosts_own_files_of_processes_are_in_no_mount") {
        return;
    }
    let folder = Folder::new();
    let mut command = inside(&["--mount", "/:/host", "--", escapes(), "raw-files"]);
    held(command.arg(folder.path().join("link")));
    let (status, text) = output_of(&mut inside(&["--mount", "/proc:/host", "--", "true"]));
    assert_eq!(status, Some(125), "{text}");
    assert!(text.contains("cannot use /proc"), "{text}");
}

#[test]
fn descriptors_permit_what_they_did_and_what_they_lead_to_gets_no_name() {
    if !is_permitted("descriptors_permit_what_they_did_and_what_they_lead_to_gets_no_name") {
        return;
    }
    let folder = Folder::new();
    let (root, jail) = (folder.path().join("root"), folder.path().join("root/jail"));
    std::fs::create_dir_all(&jail).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let program = compiled("escapes", &["-static"]);
    std::fs::copy(program, jail.join("escapes")).unwrap();
    let mount = format!("{}:/jail", jail.display());
    let words = ["--root", root.to_str().unwrap(), "--mount", &mount, "--", "/jail/escapes"];
    let command = inside(&words);
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"exec "$0" "$@" inherited 7<secret 8>>log 9<."#]);
    held(shell.arg(command.get_program()).args(command.get_args()).current_dir(folder.path()));
    assert_eq!(std::fs::read_to_string(folder.path().join("secret")).unwrap(), "secret");
}

#[test]
fn a_program_that_crashes_writes_no_file_where_it_stands() {
    let name = "a_program_that_crashes_writes_no_file_where_it_stands";
    if !is_permitted(name) {
        return;
    }
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    if pattern.starts_with(['|', '/', '@']) {
        kyocho_sys::skip::skip(name, "the host puts what is left of programs elsewhere");
        return;
    }
    let folder = Folder::new();
    let crash = "ulimit -c unlimited; cd \"$0\"; sh -c 'kill -SEGV $$'; ls -A";
    let run = |command: &mut Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"ulimit -c unlimited && exec "$0" "$@""#]);
        output_of(shell.arg(command.get_program()).args(command.get_args())).1
    };
    let outside = run(Command::new("sh").args(["-c", crash]).arg(folder.path()));
    if !outside.contains("core") {
        kyocho_sys::skip::skip(name, "what is left of programs may not be written");
        return;
    }
    for left in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::remove_file(left.unwrap().path()).unwrap();
    }
    let mount = format!("{}:/kept:ro", folder.path().display());
    run(&mut inside(&["--mount", &mount, "--", "sh", "-c", crash, "/kept"]));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A program inside that reads and writes lines.
struct Partner {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Partner {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn must_hold(mut self) {
        assert_eq!(self.hear(), "held");
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn the_number_of_a_terminal_that_is_gone_opens_no_other() {
    if !is_permitted("the_number_of_a_terminal_that_is_gone_opens_no_other") {
        return;
    }
    let mut partner = Partner::start(inside(&[escapes(), "gone-terminal"]));
    let number = partner.hear();
    // Opens terminals of the user until one has that number. The host assigns the lowest free one.
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let mut terminals = Vec::new();
    let has_number = |terminal: &std::os::fd::OwnedFd| {
        let name = rustix::pty::ptsname(terminal, Vec::new()).unwrap();
        name.to_str().unwrap().strip_prefix("/dev/pts/") == Some(&number)
    };
    while !terminals.last().is_some_and(has_number) {
        assert!(terminals.len() < 64, "no terminal has the number {number}");
        let terminal = rustix::pty::openpt(flags).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        terminals.push(terminal);
    }
    partner.go_on();
    partner.must_hold();
}

#[test]
fn signals_about_a_terminal_go_to_the_process_that_asked() {
    if !is_permitted("signals_about_a_terminal_go_to_the_process_that_asked") {
        return;
    }
    held(&mut inside(&[escapes(), "async-terminal"]));
}

/// Number of kernel threads of the server, the only child of `process`.
fn server_threads(process: u32) -> usize {
    let children = format!("/proc/{process}/task/{process}/children");
    let server = std::fs::read_to_string(children).unwrap();
    std::fs::read_dir(format!("/proc/{}/task", server.trim())).unwrap().count()
}

#[test]
fn killed_openers_of_pipes_are_not_waited_for() {
    if !is_permitted("killed_openers_of_pipes_are_not_waited_for") {
        return;
    }
    const OPENERS: usize = 48;
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    let mut command = inside(&[escapes(), "killed-openers"]);
    command.arg(pipe);
    let mut partner = Partner::start(command);
    assert_eq!(partner.hear(), "open");
    let server = partner.child.id();
    while server_threads(server) < OPENERS {
        std::thread::yield_now();
    }
    partner.go_on();
    assert_eq!(partner.hear(), "killed");
    while server_threads(server) >= OPENERS {
        std::thread::yield_now();
    }
    partner.go_on();
    partner.must_hold();
}
