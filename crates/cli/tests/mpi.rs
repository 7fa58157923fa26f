//! Nodes that are the processes of an MPI job. Built with feature `mpi`: `cargo test -p kyocho-cli
//! --features mpi --test mpi`.
//!
//! The nodes run this test program itself: [`program`] does what `KYOCHO_TEST_PROGRAM` names.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use core::time::Duration;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use kyocho_dsm::transport::{Arrival, Cause, Mpi, TcpSettings, Transport};
use kyocho_dsm::{BarrierKind, Dsm, Error, LockId, Mode, NodeId, Placement, Settings};
use kyocho_sys::skip::skip;

const PROGRAM: &str = "KYOCHO_TEST_PROGRAM";
/// Longer than any test may take.
const WATCHDOG: Duration = Duration::from_secs(120);
const LARGE: usize = 5 << 20;

/// Without the variable this is not a node, and does nothing.
#[test]
fn program() {
    let Ok(what) = std::env::var(PROGRAM) else { return };
    let said = match what.as_str() {
        "carry" => carry(),
        "silence" => silence(),
        "count" => count(),
        "disagree" => disagree(),
        "go" => go(),
        _ => panic!("unknown program: {what}"),
    };
    std::io::stderr().write_all(format!("{said}\n").as_bytes()).unwrap();
}

fn transport(deadline: Duration) -> Mpi {
    let settings = TcpSettings { deadline, message_bytes_max: 64 << 20, queue_bytes_max: 64 << 20 };
    Mpi::join([1, 2, 3, 4], WATCHDOG, settings).unwrap()
}

/// Receives this number of arrivals.
fn receive(transport: &Mpi, count: usize) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    while arrivals.len() < count {
        let more = transport.receive(WATCHDOG);
        assert!(!more.is_empty(), "only {} arrivals of {count} came", arrivals.len());
        arrivals.extend(more);
    }
    arrivals
}

/// Node 0 receives 200 small messages of each other node in order, then a large one of each, and
/// sends a large one back.
fn carry() -> String {
    let mpi = transport(WATCHDOG);
    let (me, others) = (mpi.rank(), usize::from(mpi.nodes()) - 1);
    // Closing messages of nodes that finished earlier.
    let mut early = Vec::new();
    if me == NodeId(0) {
        let arrivals = receive(&mpi, 201 * others);
        for from in (1..mpi.nodes()).map(NodeId) {
            let of_one = arrivals.iter().filter_map(|arrival| match arrival {
                Arrival::Message(sender, bytes) if *sender == from => Some(bytes.clone()),
                _ => None,
            });
            let small = (0..200_u32).map(|round| round.to_le_bytes().to_vec());
            assert!(of_one.eq(small.chain([vec![from.0 as u8; LARGE]])), "of {from:?}");
            mpi.send(from, &vec![9; LARGE]);
        }
    } else {
        (0..200_u32).for_each(|round| mpi.send(NodeId(0), &round.to_le_bytes()));
        mpi.send(NodeId(0), &vec![me.0 as u8; LARGE]);
        let large = Arrival::Message(NodeId(0), vec![9; LARGE]);
        while !early.contains(&large) {
            early.extend(receive(&mpi, 1));
        }
        early.retain(|arrival| *arrival != large);
    }
    mpi.leave();
    let mut left = receive(&mpi, others - early.len());
    left.append(&mut early);
    assert!(left.iter().all(|arrival| matches!(arrival, Arrival::Left(_))), "{left:?}");
    let traffic = mpi.traffic();
    mpi.close();
    assert_eq!(mpi.receive(WATCHDOG), [], "it is closed");
    format!("carried {} and {}", traffic.messages_sent, traffic.messages_received)
}

/// Node 1 exists and does nothing, until node 0 has detected its silence.
fn silence() -> String {
    let mpi = transport(Duration::from_millis(300));
    let noticed = PathBuf::from(std::env::var("KYOCHO_TEST_FILE").unwrap());
    if mpi.rank() == NodeId(0) {
        let came = receive(&mpi, 1);
        fs::write(noticed, "").unwrap();
        assert_eq!(came, [Arrival::Lost(NodeId(1), Cause::Silent)]);
        return "noticed".to_owned();
    }
    wait_for(&noticed);
    String::new()
}

fn wait_for(file: &std::path::Path) {
    let begun = std::time::Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < WATCHDOG, "no process noticed");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn count() -> String {
    let mut dsm = Dsm::join(Settings { memory_bytes: 1 << 20, locks: 8 }).unwrap();
    let array = dsm.allocate::<u32>(4096, Placement::Cyclic).unwrap();
    for _ in 0..50 {
        dsm.acquire(LockId(3), Mode::Exclusive).unwrap();
        let cell = &dsm.cells(&array)[7];
        cell.set(cell.get() + 1);
        dsm.release(LockId(3)).unwrap();
    }
    let mine = 1024 + usize::from(dsm.rank());
    dsm.cells(&array)[mine].set(1);
    dsm.barrier(BarrierKind::SingleReadWrite).unwrap();
    let there: u32 = dsm.cells(&array)[1024..1280].iter().map(|cell| cell.get()).sum();
    let said = format!("counted {} on {there} by {}", dsm.cells(&array)[7].get(), dsm.detection());
    dsm.leave().unwrap();
    said
}

fn disagree() -> String {
    let me = std::env::var("OMPI_COMM_WORLD_RANK").or_else(|_| std::env::var("PMI_RANK")).unwrap();
    let memory_bytes = if me == "1" { 2 << 20 } else { 1 << 20 };
    Dsm::join(Settings { memory_bytes, locks: 8 }).unwrap_err().to_string()
}

/// The last node ends without a closing message. Its process stays until node 0 has noticed.
fn go() -> String {
    let mut dsm = Dsm::join(Settings { memory_bytes: 1 << 20, locks: 8 }).unwrap();
    let noticed = PathBuf::from(std::env::var("KYOCHO_TEST_FILE").unwrap());
    dsm.barrier(BarrierKind::Ordinary).unwrap();
    if dsm.rank() == dsm.nodes() - 1 {
        drop(dsm);
        wait_for(&noticed);
        return String::new();
    }
    let why = dsm.barrier(BarrierKind::Ordinary).unwrap_err();
    assert!(matches!(why, Error::Protocol(_)), "{why:?}");
    let again = dsm.acquire(LockId(5), Mode::Exclusive).unwrap_err();
    if dsm.rank() == 0 {
        fs::write(noticed, "").unwrap();
    }
    format!("{why}; {again}")
}

/// `mpirun -n NODES kyocho dsm run --transport mpi OPTIONS this-program`, or without the command.
/// `None` if it is not installed.
fn mpirun(test: &str, nodes: u16, what: &str, options: Option<&[&str]>) -> Option<(bool, String)> {
    let this = std::env::current_exe().unwrap();
    let mut command = job(test, nodes)?;
    if let Some(options) = options {
        command.arg(env!("CARGO_BIN_EXE_kyocho")).args(["dsm", "run", "--transport", "mpi"]);
        command.args(options).arg("--");
    }
    command.arg(this).args(["--exact", "program", "--nocapture", "--quiet"]).env(PROGRAM, what);
    let file = std::env::temp_dir().join(format!("kyocho-mpi-{test}-{}", std::process::id()));
    let said = said(command.env("KYOCHO_TEST_FILE", &file));
    let _absent = fs::remove_file(file);
    Some(said)
}

fn said(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = [stdout, stderr].concat();
    (status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn job(test: &str, nodes: u16) -> Option<Command> {
    let found = Command::new("mpirun").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        skip(test, "mpirun is not installed");
        return None;
    }
    let mut command = Command::new("mpirun");
    command.stdin(Stdio::null()).args(["-n", &nodes.to_string()]);
    // Variables of Open MPI, which other libraries ignore.
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ] {
        command.env(name, value);
    }
    Some(command)
}

fn times(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn messages_small_and_large_arrive_in_order_and_goodbyes_last() {
    let test = "messages_small_and_large_arrive_in_order_and_goodbyes_last";
    let Some((well, text)) = mpirun(test, 3, "carry", None) else { return };
    assert!(well, "{text}");
    assert_eq!(
        (times(&text, "carried 2 and 402"), times(&text, "carried 201 and 1")),
        (1, 2),
        "{text}"
    );
}

#[test]
fn a_silent_process_is_lost() {
    let Some((_, text)) = mpirun("a_silent_process_is_lost", 2, "silence", None) else { return };
    assert_eq!(times(&text, "noticed"), 1, "{text}");
}

#[test]
fn processes_of_a_job_are_nodes_that_share_memory() {
    let test = "processes_of_a_job_are_nodes_that_share_memory";
    for (nodes, options) in
        [(1, &[][..]), (2, &["--detection", "protect"]), (4, &["--scheme", "holder"])]
    {
        let Some((well, text)) = mpirun(test, nodes, "count", Some(options)) else { return };
        assert!(well, "{options:?}: {text}");
        let expected = format!("counted {} on {nodes} by ", 50 * nodes);
        assert_eq!(times(&text, &expected), usize::from(nodes), "{options:?}: {text}");
    }
}

#[test]
fn a_scheme_program_runs_as_an_mpi_job() {
    let test = "a_scheme_program_runs_as_an_mpi_job";
    let Some(mut command) = job(test, 2) else { return };
    let file = std::env::temp_dir().join(format!("kyocho-mpi-{}.scm", std::process::id()));
    let program = "(import (scheme base) (scheme write) (kyocho dsm))
        (define counter (make-shared-vector 1))
        (with-shared-lock 1
          (shared-vector-set! counter 0 (+ 21 (shared-vector-ref counter 0))))
        (shared-barrier)
        (write (list 'counted (shared-vector-ref counter 0)))";
    fs::write(&file, program).unwrap();
    command.arg(env!("CARGO_BIN_EXE_kyocho")).args(["dsm", "run", "--transport", "mpi"]);
    let (well, text) = said(command.arg(&file));
    fs::remove_file(file).unwrap();
    assert!(well, "{text}");
    assert_eq!(times(&text, "(counted 42)"), 2, "{text}");
}

#[test]
fn nodes_that_disagree_are_reported_on_both_sides() {
    let test = "nodes_that_disagree_are_reported_on_both_sides";
    let Some((_, text)) = mpirun(test, 2, "disagree", Some(&[])) else { return };
    for node in [0, 1] {
        let expected = format!("node {node} has another size of memory, number of locks or scheme");
        assert_eq!(times(&text, &expected), 1, "{text}");
    }
}

#[test]
fn a_node_that_ends_without_a_closing_message_is_reported_to_all() {
    let test = "a_node_that_ends_without_a_closing_message_is_reported_to_all";
    let Some((_, text)) = mpirun(test, 3, "go", Some(&[])) else { return };
    assert!(times(&text, "node 2 is dead") >= 2, "{text}");
}
