//! `kyocho dsm run` and its nodes: the settings with which nodes start, and which processes end
//! together.
//!
//! The nodes run this test program itself: [`program`] does what `KYOCHO_TEST_PROGRAM` names.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::time::Duration;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use kyocho_dsm::{BarrierKind, Dsm, Settings};

const PROGRAM: &str = "KYOCHO_TEST_PROGRAM";
const VICTIM: &str = "KYOCHO_TEST_VICTIM";
/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Without the variable this is not a node, and does nothing.
#[test]
fn program() {
    let Ok(what) = std::env::var(PROGRAM) else { return };
    let victim = std::env::var(VICTIM).ok();
    if what == "die" && victim == std::env::var("KYOCHO_DSM_RANK").ok() {
        std::process::abort();
    }
    let dsm = Dsm::join(Settings { memory_bytes: 1 << 20, locks: 8 });
    let ended = dsm.and_then(|mut dsm| {
        if dsm.rank() == 0 {
            std::thread::park_timeout(WATCHDOG);
        }
        dsm.barrier(BarrierKind::Ordinary)
    });
    if let Err(why) = ended {
        // One write, because all nodes write to one standard error.
        let _written = std::io::stderr().write_all(format!("{why}\n").as_bytes());
        std::process::exit(3);
    }
}

fn kyocho() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.stdin(Stdio::null()).arg("dsm");
    command
}

/// A folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dsm-launch-{name}"));
    let _left = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

/// Writes a replacement for ssh that reaches this host only. Like ssh, it joins its arguments by
/// spaces and passes them to a shell. In that shell, a host name is known that is unknown here.
fn remote_shell(folder: &Path) -> PathBuf {
    let shell = folder.join("remote-shell");
    let bin = Path::new(env!("CARGO_BIN_EXE_kyocho")).parent().unwrap();
    let text = format!(
        "#!/bin/bash\nshift\nPATH={}:$PATH\n\
         exec /bin/sh -c \"$*\" < <(exec sed -u s/elsewhere.invalid/127.0.0.1/g)\n",
        bin.display()
    );
    fs::write(&shell, text).unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    shell
}

/// `kyocho dsm run` with this number of slots on a host that the remote shell reaches.
fn run_elsewhere(folder: &Path, slots: u16) -> Command {
    let hosts = folder.join("hosts");
    // Below the ports that the kernel gives to clients.
    let port = 20_000 + (std::process::id() * 16 + u32::from(slots)) % 10_000;
    fs::write(&hosts, format!("elsewhere.invalid:{port} {slots}\n")).unwrap();
    let mut command = kyocho();
    command.args(["run", "-n", &slots.to_string(), "--hosts"]).arg(&hosts);
    command.env("KYOCHO_DSM_RSH", remote_shell(folder));
    command
}

fn run_here(nodes: u16, transport: &str) -> Command {
    let mut command = kyocho();
    command.args(["run", "-n", &nodes.to_string(), "--transport", transport]);
    command
}

/// Adds this program, which then does `what`.
fn with_program<'a>(command: &'a mut Command, what: &str) -> &'a mut Command {
    let this = std::env::current_exe().unwrap();
    command.env(PROGRAM, what).arg("--").arg(this);
    command.args(["--exact", "program", "--nocapture", "--quiet"])
}

#[test]
fn arguments_reach_another_host_as_they_are() {
    let folder = folder("arguments");
    let trap = folder.join("trap");
    let arguments = [
        "two words".to_owned(),
        format!("; touch {}", trap.display()),
        format!("$(touch {0}) `touch {0}`", trap.display()),
        "it's \"so\"".to_owned(),
        String::new(),
        "two\nlines".to_owned(),
        "* ? ~ \\ $HOME & > <".to_owned(),
    ];
    let mut command = run_elsewhere(&folder, 1);
    command.args(["--", "/bin/sh", "-c", "printf '[%s]' \"$@\" >&2", "shell"]).args(&arguments);
    let output = command.output().unwrap();
    let expected: String = arguments.iter().map(|argument| format!("[{argument}]")).collect();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    assert!(output.status.success() && !trap.exists());
}

#[test]
fn a_node_that_ends_before_it_joins_is_reported_to_all() {
    for victim in ["0", "2"] {
        let folder = folder("joining");
        let commands = [run_here(3, "shm"), run_here(3, "tcp"), run_elsewhere(&folder, 3)];
        for mut command in commands {
            let command = with_program(&mut command, "die").env(VICTIM, victim);
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let expected = format!("node {victim} ended before all nodes had joined");
            assert_eq!(text.matches(&expected).count(), 2, "{command:?}: {text}");
            assert!(!text.contains("ending the remaining nodes"), "{command:?}: {text}");
        }
    }
}

/// Whether a process exists and is not a zombie.
fn runs(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

/// Kills the command by SIGKILL, and waits until none of these processes runs.
fn kill(mut command: Child, processes: &[String]) {
    command.kill().unwrap();
    command.wait().unwrap();
    let begun = Instant::now();
    while processes.iter().any(|process| runs(process)) {
        if begun.elapsed() > WATCHDOG {
            processes.iter().for_each(|process| {
                let _killed = Command::new("kill").args(["-9", process]).status();
            });
            panic!("{processes:?} ran still");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// The processes of this number of nodes, once all have written their files.
fn processes(folder: &Path, nodes: usize) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let output = kyocho().args(["top", "--json"]).env("KYOCHO_DIR", folder).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let parts = text.split("\"process\":").skip(1);
        let number = |part: &str| part.chars().take_while(char::is_ascii_digit).collect();
        let found: Vec<String> = parts.map(number).collect();
        if found.len() == nodes {
            return found;
        }
        assert!(begun.elapsed() < WATCHDOG, "no {nodes} nodes: {text}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn nodes_end_with_the_command_that_started_them() {
    for (name, nodes) in [("shm", 3), ("tcp", 3), ("elsewhere", 2)] {
        let folder = folder(&format!("killed-{name}"));
        let mut command = match name {
            "elsewhere" => run_elsewhere(&folder, nodes),
            transport => run_here(nodes, transport),
        };
        let command = with_program(&mut command, "wait").env("KYOCHO_DIR", &folder);
        let command = command.stderr(Stdio::null()).spawn().unwrap();
        let processes = processes(&folder, usize::from(nodes));
        kill(command, &processes);
        let left: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|file| file.trim_start_matches('.').starts_with("dsm-"))
            .collect();
        assert_eq!(left, [] as [&str; 0], "{name}: counters");
    }
}

#[test]
fn a_program_that_never_joins_ends_with_the_command_as_well() {
    let mut command = run_here(2, "shm");
    command.args(["--", "/bin/sh", "-c", "echo $$; exec sleep 1000"]);
    let mut command = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(command.stdout.take().unwrap()).lines().take(2);
    let processes: Vec<String> = lines.map(Result::unwrap).collect();
    kill(command, &processes);
}
