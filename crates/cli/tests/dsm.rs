//! `kyocho dsm` with nodes that are processes: the death of a node, and mistakes in its use.
//!
//! The nodes run this test program itself: [`program`] does what `KYOCHO_TEST_PROGRAM` names.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kyocho_dsm::{
    BarrierKind, ConditionId, Dsm, Error, LockId, Mode, NodeId, PageId, Placement, Settings,
    SharedArray, Waiters,
};

const PROGRAM: &str = "KYOCHO_TEST_PROGRAM";

/// Without the variable this is not a node, and does nothing.
#[test]
fn program() {
    let Ok(what) = std::env::var(PROGRAM) else { return };
    let memory_bytes = match (what.as_str(), std::env::var("KYOCHO_DSM_RANK").as_deref()) {
        ("disagree", Ok("1")) => 2 << 20,
        _ => 1 << 20,
    };
    let ended =
        Dsm::join(Settings { memory_bytes, locks: 8 }).and_then(|dsm| match what.as_str() {
            "count" => count(dsm),
            "die" => outlive(dsm, |dsm, _| dsm.barrier(BarrierKind::Ordinary)),
            "die and be read" => outlive(dsm, |dsm, array| {
                let _dead = dsm.barrier(BarrierKind::Ordinary).unwrap_err();
                assert_eq!(dsm.cells(array)[2048].get(), 0, "no node can read this");
                Ok(())
            }),
            "leave early: barrier" => leave_early(dsm, |dsm| dsm.barrier(BarrierKind::Ordinary)),
            "leave early: lock" => leave_early(dsm, |dsm| dsm.acquire(LockId(1), Mode::Exclusive)),
            "leave early: page" => leave_early(dsm, |dsm| dsm.fetch(PageId(2))),
            "read" => read(dsm),
            "wait" => wait_for_end_of_input(dsm),
            _ => count(dsm),
        });
    match ended {
        Ok(text) => say(&text),
        Err(why) => {
            say(&why.to_string());
            std::process::exit(3)
        }
    }
}

/// Prints one line by one write, because other nodes write at the same time.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

type Array = SharedArray<u32>;

/// The last node dies after all nodes have counted. Then the others use something that needs it.
fn outlive(
    mut dsm: Dsm,
    then: impl FnOnce(&mut Dsm, &Array) -> Result<(), Error>,
) -> Result<String, Error> {
    let last = dsm.nodes() - 1;
    let array = dsm.allocate::<u32>(4096, Placement::On(NodeId(last)))?;
    if dsm.rank() == last {
        dsm.cells(&array)[2048].set(1);
    }
    dsm.barrier(BarrierKind::Ordinary)?;
    dsm.acquire(LockId(3), Mode::Exclusive)?;
    let counted = dsm.cells(&array)[7].get() + 1;
    dsm.cells(&array)[7].set(counted);
    if dsm.rank() == last {
        while dsm.cells(&array)[7].get() < u32::from(last) + 1 {
            dsm.wait(LockId(3), ConditionId(0))?;
        }
        std::process::abort();
    }
    dsm.release(LockId(3))?;
    dsm.signal(LockId(3), ConditionId(0), Waiters::All)?;
    then(&mut dsm, &array)?;
    Ok(String::new())
}

/// Node 1 leaves at the barrier of an allocation. Then the others use something that needs it.
fn leave_early(
    mut dsm: Dsm,
    then: impl FnOnce(&mut Dsm) -> Result<(), Error>,
) -> Result<String, Error> {
    let array = dsm.allocate::<u32>(4096, Placement::On(NodeId(1)))?;
    if dsm.rank() == 1 {
        dsm.cells(&array)[2048].set(1);
        dsm.leave()?;
        return Ok("left".to_owned());
    }
    dsm.barrier(BarrierKind::Ordinary)?;
    // At the latest, node 0 reports it to node 2 by this.
    if dsm.rank() == 0 {
        then(&mut dsm)?;
    } else {
        dsm.barrier(BarrierKind::Ordinary)?;
    }
    Ok("went on".to_owned())
}

/// Waits for the end of standard input.
fn wait_for_end_of_input(mut dsm: Dsm) -> Result<String, Error> {
    if dsm.rank() == 0 {
        std::io::read_to_string(std::io::stdin()).unwrap();
    }
    dsm.barrier(BarrierKind::Ordinary)?;
    dsm.leave()?;
    Ok(String::new())
}

/// Returns what standard input contains.
fn read(dsm: Dsm) -> Result<String, Error> {
    let text = std::io::read_to_string(std::io::stdin()).unwrap();
    dsm.leave()?;
    Ok(format!("read {text:?}"))
}

fn count(mut dsm: Dsm) -> Result<String, Error> {
    let array: Array = dsm.allocate(4096, Placement::Cyclic)?;
    for _ in 0..50 {
        dsm.acquire(LockId(3), Mode::Exclusive)?;
        let cell = &dsm.cells(&array)[7];
        cell.set(cell.get() + 1);
        dsm.release(LockId(3))?;
    }
    dsm.barrier(BarrierKind::Ordinary)?;
    let text = format!("counted {} on {}", dsm.cells(&array)[7].get(), dsm.nodes());
    dsm.leave()?;
    Ok(text)
}

fn kyocho() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.stdin(Stdio::null()).arg("dsm");
    command
}

/// Runs `what` on nodes started with these options. Returns exit code and standard error.
fn run(what: &str, options: &[&str]) -> (Option<i32>, String) {
    said(with_program(kyocho().arg("run").args(options).env(PROGRAM, what)))
}

fn with_program(command: &mut Command) -> &mut Command {
    let this = std::env::current_exe().unwrap();
    command.arg("--").arg(this).args(["--exact", "program", "--nocapture", "--quiet"])
}

fn said(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

fn times(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn nodes_are_processes_that_share_memory() {
    for options in [
        &["-n", "3"][..],
        &["-n", "1"],
        &["-n", "2", "--scheme", "holder", "--detection", "protect"],
        &["-n", "3", "--transport", "tcp"],
        &["-n", "4", "--transport", "shm"],
    ] {
        let (code, text) = run("count", options);
        let nodes: usize = options[1].parse().unwrap();
        let counted = format!("counted {} on {nodes}", 50 * nodes);
        assert_eq!((code, times(&text, &counted)), (Some(0), nodes), "{options:?}: {text}");
    }
}

#[test]
fn every_node_reads_a_file_as_input_and_only_the_first_reads_anything_else() {
    let file = folder("input").join("numbers");
    fs::write(&file, "1 2 3").unwrap();
    let mut command = kyocho();
    command.args(["run", "-n", "3"]).env(PROGRAM, "read");
    let (code, text) = said(with_program(&mut command).stdin(fs::File::open(file).unwrap()));
    assert_eq!((code, times(&text, r#"read "1 2 3""#)), (Some(0), 3), "{text}");
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"4").unwrap();
    drop(writer);
    let mut command = kyocho();
    command.args(["run", "-n", "3"]).env(PROGRAM, "read");
    let (code, text) = said(with_program(&mut command).stdin(reader));
    assert_eq!((code, times(&text, r#"read "4""#), times(&text, r#"read """#)), (Some(0), 1, 2));
}

#[test]
fn top_shows_what_nodes_do_and_wait_for_while_they_live() {
    let folder = folder("top");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let top = |how| {
        let output = kyocho().args(["top", how]).env("KYOCHO_DIR", &folder).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(top("--json").trim(), "[]");
    assert!(top("--once").contains("no nodes run here"));
    let mut command = kyocho();
    command.args(["run", "-n", "2"]).env(PROGRAM, "wait").env("KYOCHO_DIR", &folder);
    let mut nodes = with_program(&mut command).stdin(Stdio::piped()).spawn().unwrap();
    // Node 1 is at the barrier, and its counters show that within a second.
    let mut seen = top("--json");
    while times(&seen, r#""rank":"#) < 2 || !seen.contains(r#""waits_for":"the barrier""#) {
        assert_eq!(nodes.try_wait().unwrap(), None, "the nodes have ended: {seen}");
        std::thread::park_timeout(core::time::Duration::from_millis(20));
        seen = top("--json");
    }
    assert!(seen.contains(r#""nodes":2"#) && seen.contains(r#""bytes_sent":"#), "{seen}");
    let table = top("--once");
    assert!(table.contains("the barrier") && table.lines().count() == 4, "{table}");
    drop(nodes.stdin.take());
    assert!(nodes.wait().unwrap().success());
    assert_eq!(top("--json").trim(), "[]");
}

#[test]
fn top_takes_a_screen_and_leaves_it_when_asked() {
    let folder = folder("top-screen");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    for key in ["q", "\x03"] {
        // A pseudo-terminal has no size unless one is set.
        let mut command = Command::new("sh");
        let start = concat!(
            "stty rows 24 cols 80; ",
            env!("CARGO_BIN_EXE_kyocho"),
            " dsm top; echo ended $?"
        );
        command.args(["-c", start]).env("KYOCHO_DIR", &folder).env("TERM", "xterm");
        let mut top = rexpect::session::spawn_command(command, Some(60_000)).unwrap();
        for label in ["start", "leave", "second"] {
            top.exp_string(label).unwrap_or_else(|error| panic!("waited for {label}: {error}"));
        }
        top.send(key).unwrap();
        top.flush().unwrap();
        top.exp_string("ended 0").unwrap_or_else(|error| panic!("{key:?} leaves: {error}"));
    }
}

#[test]
fn a_killed_node_is_reported_to_all_and_none_is_left() {
    for transport in ["shm", "tcp"] {
        let (code, text) = run("die", &["-n", "3", "--transport", transport]);
        assert_eq!(code, Some(128 + 6), "{transport}: {text}");
        assert!(text.contains("node 2 was ended by signal 6"), "{transport}: {text}");
        // One node may have released the lock just before, without having reported that to a
        // waiting node.
        let expected = "node 2 is dead: ";
        assert_eq!(times(&text, expected), 2, "{transport}: {text}");
    }
}

#[test]
fn a_node_that_leaves_before_the_others_is_reported_to_all() {
    for transport in ["shm", "tcp"] {
        for (what, subject) in [("barrier", "the barrier"), ("lock", "lock 1"), ("page", "page 2")]
        {
            let program = format!("leave early: {what}");
            let (code, text) = run(&program, &["-n", "3", "--transport", transport]);
            assert_eq!(code, Some(3), "{transport}, {what}: {text}");
            assert_eq!(times(&text, "left\n"), 1, "{transport}, {what}: {text}");
            assert_eq!(times(&text, "node 1 has left: "), 2, "{transport}, {what}: {text}");
            let expected = format!("node 1 has left: {subject} is not available");
            assert!(text.contains(&expected), "{transport}, {what}: {text}");
        }
    }
}

#[test]
fn a_page_that_is_lost_ends_its_reader_by_name() {
    for transport in ["shm", "tcp"] {
        let (code, text) = run("die and be read", &["-n", "3", "--transport", transport]);
        assert_eq!(code, Some(128 + 6), "{transport}: {text}");
        assert!(text.contains("kyocho-dsm: node 2 is dead: page 2 is not available"), "{text}");
        assert!(text.contains("ended with exit code 75"), "{transport}: {text}");
    }
}

#[test]
fn nodes_that_disagree_are_reported_on_both_sides() {
    let (code, text) = run("disagree", &["-n", "2"]);
    assert_eq!(code, Some(3), "{text}");
    for node in [0, 1] {
        let expected = format!("node {node} has another size of memory");
        assert!(text.contains(&expected), "{text}");
    }
}

/// A folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dsm-{name}"));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn nodes_on_other_hosts_get_their_place_by_the_remote_shell() {
    let folder = folder("hosts");
    let shell = folder.join("shell");
    // Replaces ssh: takes a host and a command line, joins the words by spaces and passes them to a
    // shell.
    let bin = Path::new(env!("CARGO_BIN_EXE_kyocho")).parent().unwrap();
    let text = format!("#!/bin/sh\nshift\nPATH={}:$PATH\nexec /bin/sh -c \"$*\"\n", bin.display());
    fs::write(&shell, text).unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    let hosts = folder.join("hosts");
    // Below the ports that the kernel gives to clients.
    let port = 20_000 + std::process::id() % 10_000;
    fs::write(&hosts, format!("127.0.0.1:{port} 2 # this one\n")).unwrap();
    let mut command = kyocho();
    command.args(["run", "-n", "2", "--hosts"]).arg(&hosts);
    command.env("KYOCHO_DSM_RSH", &shell).env(PROGRAM, "count");
    let (code, text) = said(with_program(&mut command));
    assert_eq!((code, times(&text, "counted 100 on 2")), (Some(0), 2), "{text}");
}

#[test]
fn mistakes_of_the_command_line_are_named() {
    let hosts = folder("mistakes").join("hosts");
    fs::write(&hosts, "one 1\n").unwrap();
    let hosts = hosts.to_str().unwrap();
    for (options, code, expected) in [
        (&["run", "-n", "2", "/no/such/program"][..], 1, "cannot run /no/such/program"),
        (&["run", "--hosts", "/no/such/file", "true"], 1, "/no/such/file"),
        (&["run", "-n", "2", "--hosts", hosts, "true"], 1, "1 slots for 2 nodes"),
        (&["run", "-n", "0", "true"], 2, "0 is not in 1..=4096"),
        (&["run", "--transport", "pigeon", "true"], 2, "possible values: shm, tcp"),
        (&["run", "--transport", "shm", "-n", "65", "true"], 1, "at most 64 nodes: use tcp"),
        (&["run", "--transport", "shm", "--hosts", hosts, "true"], 1, "leave out --hosts"),
        (
            &["run", "--transport", "mpi", "true"],
            1,
            "not a process of an MPI job. Use: mpirun -n N",
        ),
        (&["run", "--transport", "mpi", "-n", "2", "true"], 1, "leave out --nodes and --hosts"),
        (&["run", "--detection", "magic", "true"], 2, "use scan, userfault or protect"),
        (&["run"], 2, "<PROGRAM>"),
        (&["node", "true"], 0, ""),
    ] {
        let (ended, text) = said(kyocho().args(options));
        assert_eq!(ended, Some(code), "{options:?}: {text}");
        assert!(text.contains(expected), "{options:?}: {text}");
    }
    let this = std::env::current_exe().unwrap();
    let mut alone = Command::new(this);
    alone.args(["--exact", "program", "--nocapture", "--quiet"]).env(PROGRAM, "count");
    let (code, text) = said(alone.env("KYOCHO_DSM_RANK", "first"));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("KYOCHO_DSM_RANK must be a rank"), "{text}");
}

#[test]
fn check_says_how_writes_are_noticed() {
    let output = kyocho().arg("check").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("writes           detected by "), "{text}");
    assert!(text.contains("protect          yes"), "{text}");
    assert!(text.contains("messages         by memory on this host"), "{text}");
}
