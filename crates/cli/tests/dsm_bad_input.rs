//! Nodes that are started wrongly, that make invalid requests, or that are killed at any step. Each
//! mistake is reported, and nothing is left behind.
//!
//! The nodes run this test program itself: [`program`] does what `KYOCHO_TEST_PROGRAM` names. A
//! shell between `kyocho dsm run` and the node changes the node's settings.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::sync::atomic::{AtomicU32, Ordering};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kyocho_dsm::{
    BarrierKind, ConditionId, Dsm, Error, LockId, Mode, NodeId, PageId, Placement, Settings,
    Waiters,
};

const PROGRAM: &str = "KYOCHO_TEST_PROGRAM";
/// The step at which the last node is killed, and how many turns the killing thread waits first.
const STEP: &str = "KYOCHO_TEST_STEP";
const YIELDS: &str = "KYOCHO_TEST_YIELDS";

/// Without the variable this is not a node, and does nothing.
#[test]
fn program() {
    let Ok(what) = std::env::var(PROGRAM) else { return };
    say(&format!("pid {}", std::process::id()));
    let settings = match what.as_str() {
        "too much memory" => Settings { memory_bytes: usize::MAX / 2, locks: 8 },
        "no memory" => Settings { memory_bytes: 0, locks: 8 },
        _ => Settings { memory_bytes: 1 << 20, locks: 8 },
    };
    let ended = Dsm::join(settings).and_then(|dsm| match what.as_str() {
        "die" => die(dsm),
        _ => ask_wrongly(dsm),
    });
    match ended {
        Ok(()) => say("well"),
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

/// Makes every invalid request. Each must return its error and change nothing: a later count by all
/// nodes is right.
fn ask_wrongly(mut dsm: Dsm) -> Result<(), Error> {
    let array = dsm.allocate::<u32>(1024, Placement::Cyclic)?;
    let (nodes, lock) = (dsm.nodes(), LockId(1));
    let said = |result: Result<(), Error>| result.unwrap_err().to_string();
    let nowhere = format!("node {nodes} is outside of the layout");
    assert_eq!(said(dsm.release(lock)), "lock 1 is not held: acquire it first");
    assert_eq!(said(dsm.publish(lock)), "lock 1 is not held: acquire it first");
    assert_eq!(said(dsm.wait(lock, ConditionId(0))), "lock 1 is not held: acquire it first");
    assert_eq!(said(dsm.acquire(LockId(8), Mode::Exclusive)), "lock 8 is outside of the layout");
    let signal = dsm.signal(LockId(u32::MAX), ConditionId(0), Waiters::One);
    assert_eq!(said(signal), "lock 4294967295 is outside of the layout");
    assert_eq!(said(dsm.fetch(PageId(256))), "page 256 is outside of the layout");
    assert_eq!(said(dsm.move_page(PageId(256), NodeId(0))), "page 256 is outside of the layout");
    assert_eq!(said(dsm.move_page(PageId(0), NodeId(nodes))), nowhere);
    assert_eq!(said(dsm.move_lock(lock, NodeId(nodes))), nowhere);
    let placed = dsm.allocate::<u32>(1, Placement::On(NodeId(nodes)));
    assert_eq!(said(placed.map(drop)), nowhere);
    let full = said(dsm.allocate::<u64>(1 << 20, Placement::Blocks).map(drop));
    assert!(full.starts_with("8388608 bytes do not fit: 1044480 are left"), "{full}");
    for _ in 0..20 {
        dsm.acquire(lock, Mode::Exclusive)?;
        assert_eq!(said(dsm.acquire(lock, Mode::Exclusive)), "lock 1 is held already");
        let cell = &dsm.cells(&array)[7];
        cell.set(cell.get() + 1);
        dsm.release(lock)?;
    }
    dsm.barrier(BarrierKind::Ordinary)?;
    assert_eq!(dsm.cells(&array)[7].get(), 20 * u32::from(nodes));
    dsm.leave()
}

/// Makes calls of every kind in turn. The last node is killed at the given step.
fn die(mut dsm: Dsm) -> Result<(), Error> {
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (fatal, yields) = (number(STEP), number(YIELDS));
    let is_last = dsm.rank() + 1 == dsm.nodes();
    let mut step = 0;
    let mut next = || {
        step += 1;
        if is_last && step == fatal {
            if yields == 0 {
                std::process::abort();
            }
            // The node is killed wherever it is by then.
            std::thread::spawn(move || {
                (0..yields).for_each(|_| std::thread::yield_now());
                std::process::abort()
            });
        }
    };
    next();
    let array = dsm.allocate::<u32>(4096, Placement::Cyclic)?;
    let (lock, pages, nodes) = (LockId(2), array.pages(0..4096), u32::from(dsm.nodes()));
    for kind in [BarrierKind::Ordinary, BarrierKind::SingleReadWrite] {
        for page in &pages {
            next();
            dsm.fetch(*page)?;
        }
        next();
        dsm.acquire(lock, Mode::Exclusive)?;
        next();
        let cell = &dsm.cells(&array)[7];
        cell.set(cell.get() + 1);
        let round = cell.get().div_ceil(nodes);
        while dsm.cells(&array)[7].get() < nodes * round {
            next();
            dsm.wait(lock, ConditionId(0))?;
        }
        next();
        dsm.release(lock)?;
        next();
        dsm.signal(lock, ConditionId(0), Waiters::All)?;
        next();
        dsm.move_lock(lock, NodeId(dsm.rank()))?;
        dsm.move_page(pages[0], NodeId(dsm.rank()))?;
        next();
        dsm.barrier(kind)?;
    }
    next();
    if is_last && fatal > step {
        // There is no step with this number, so the caller's loop ends.
        say("lived");
    }
    dsm.leave()
}

/// A folder of this test, for the counters of nodes.
fn folder(number: u32) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dsm-bad-{number}"));
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

/// Runs `what` on nodes started with these options, by a shell that first executes `first`. Returns
/// exit code and standard error. Checks that no files are left.
fn run(
    what: &str,
    before: &str,
    options: &[&str],
    variables: &[(&str, String)],
) -> (Option<i32>, String) {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let folder = folder(RUNS.fetch_add(1, Ordering::Relaxed));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.args(["dsm", "run", "--deadline-ms", "1000"]).args(options).arg("--");
    command.args(["sh", "-c", &format!("{before}\nexec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "program", "--nocapture", "--quiet"]);
    command.env(PROGRAM, what).env("KYOCHO_DIR", &folder).envs(variables.iter().cloned());
    let Output { status, stderr, .. } = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&stderr).into_owned();
    for pid in text.lines().filter_map(|line| line.strip_prefix("pid ")) {
        assert!(!Path::new("/proc").join(pid).exists(), "node {pid} is left: {text}");
    }
    let left: Vec<_> = files(&folder);
    assert!(left.is_empty(), "files are left: {left:?}\n{text}");
    (status.code(), text)
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

const TRANSPORTS: [&str; 2] = ["tcp", "shm"];

#[test]
fn a_node_that_is_started_wrongly_is_reported_by_name() {
    let second = |change: &str| format!("[ $KYOCHO_DSM_RANK = 1 ] && {change}");
    let cases = [
        (
            second("export KYOCHO_DSM_SECRET=$(printf 'ab%.0s' $(seq 32))"),
            "node 0 was started with another secret: start all nodes by the same `kyocho dsm run`",
        ),
        (second("export KYOCHO_DSM_SECRET=swordfish"), "KYOCHO_DSM_SECRET must be 64 hexadecimal"),
        (second("export KYOCHO_DSM_RANK=9"), "KYOCHO_DSM_RANK must be a rank below"),
        (
            second("export KYOCHO_DSM_NODES=127.0.0.1:1,${KYOCHO_DSM_NODES#*,}"),
            "node 0 cannot be reached at 127.0.0.1:1",
        ),
        (second("unset KYOCHO_DSM_LISTENER"), "choose another port"),
        (second("export KYOCHO_DSM_LISTENER=1"), "KYOCHO_DSM_LISTENER must be the number of"),
        (second("export KYOCHO_DSM_SCHEME=holder"), "node 0 has another size of memory"),
    ];
    let check = |transport: &str, nodes: &str, before: &str, expected: &str| {
        let (code, text) = run("ask", before, &["-n", nodes, "--transport", transport], &[]);
        assert!(code != Some(0) && text.contains(expected), "{before}, {transport}: {text}");
        assert!(!text.contains("well"), "{before}, {transport}: {text}");
    };
    // Both at the same time, because the node with correct settings waits for the other one.
    std::thread::scope(|scope| {
        for transport in TRANSPORTS {
            for (before, expected) in &cases {
                scope.spawn(move || check(transport, "2", before, expected));
            }
            let more = second("export KYOCHO_DSM_NODES=$KYOCHO_DSM_NODES,127.0.0.1:1");
            let expected =
                if transport == "tcp" { "expects 2 nodes" } else { "KYOCHO_DSM_SHARED must be" };
            scope.spawn(move || check(transport, "2", &more, expected));
            let twin = "[ $KYOCHO_DSM_RANK = 2 ] && export KYOCHO_DSM_RANK=1";
            scope.spawn(move || check(transport, "3", twin, "two nodes have rank 1"));
        }
    });
}

#[test]
fn what_cannot_be_is_named_and_corrupts_nothing() {
    for transport in TRANSPORTS {
        let options = ["-n", "3", "--transport", transport];
        let (code, text) = run("ask wrongly", "", &options, &[]);
        assert_eq!((code, text.matches("well").count()), (Some(0), 3), "{transport}: {text}");
        for (what, bytes) in [("too much memory", "9223372036854775807"), ("no memory", "0")] {
            let (code, text) = run(what, "", &options, &[]);
            let expected = format!("{bytes} bytes of shared memory: 1 to ");
            assert_eq!((code, text.matches(&expected).count()), (Some(3), 3), "{what}: {text}");
        }
    }
}

/// Kills the last of three nodes at each step of its program, at the beginning of the step and a
/// while later, until there is no further step.
fn kill_at_every_step(transport: &str, yields: u64) {
    for step in 1..200 {
        let variables = [(STEP, step.to_string()), (YIELDS, yields.to_string())];
        let (code, text) = run("die", "", &["-n", "3", "--transport", transport], &variables);
        let what = format!("{transport}, step {step}, {yields} turns");
        if text.contains("lived") {
            assert!(step > 20 && code == Some(0), "{what}: {text}");
            return;
        }
        let well = text.matches("well").count();
        let reports = text.matches("node 2 is dead: ").count();
        if well == 3 {
            // The node had finished before it was killed.
            assert!(yields > 0, "{what}: {text}");
            continue;
        }
        assert_eq!(code, Some(128 + 6), "{what}: {text}");
        assert!(text.contains("node 2 was ended by signal 6"), "{what}: {text}");
        // A node that had crossed the last barrier before is not affected.
        assert_eq!(reports + well, 2, "{what}: {text}");
        assert!(well == 0 || yields > 0, "{what}: {text}");
    }
    panic!("a node that has so many steps");
}

#[test]
fn a_node_killed_at_any_step_is_named_to_all_others_by_tcp() {
    kill_at_every_step("tcp", 0);
    kill_at_every_step("tcp", 20);
}

#[test]
fn a_node_killed_at_any_step_is_named_to_all_others_by_memory() {
    kill_at_every_step("shm", 0);
    kill_at_every_step("shm", 20);
}
