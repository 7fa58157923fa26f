//! `kyocho dsm run`: starts the nodes, waits for them, and leaves none running.
//!
//! On this host each node gets a listening socket, so no other program can take its port in
//! between. It also gets the memory for messages, which has no name in the file system, so nothing
//! of it remains. On other hosts a node binds the port that the file of hosts gives it. In an MPI
//! job, `mpirun` has started this command once for each node, and the command replaces itself by
//! the program.

use core::time::Duration;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::mpsc::{self, Receiver};

use kyocho_dsm::counters;
use kyocho_dsm::launch::variable;
use kyocho_sys::prim::clock::Instant;
use kyocho_sys::prim::thread;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::dsm::start::{Node, start};
use crate::dsm::{LockScheme, RunArguments, TransportKind};
use crate::terminal::complain;

/// Time after the deadline for the other nodes to notice a node's death by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// Interval at which the command checks whether nodes have ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Environment variables that a process of an MPI job has: those of Open MPI's and MPICH's
/// `mpirun`, and Slurm's `srun`.
const STARTED_BY_MPI: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"];

pub(crate) fn command(arguments: &RunArguments) -> ExitCode {
    if arguments.transport == Some(TransportKind::Mpi) {
        complain(&format!("kyocho dsm run: {}", become_program(arguments)));
        return ExitCode::FAILURE;
    }
    match start(arguments) {
        Ok(nodes) => {
            let count = nodes.len() as u16;
            let code = watch(nodes, Duration::from_millis(arguments.deadline_ms));
            if let Err(why) = counters::forget(&run_name(std::process::id()), count) {
                complain(&format!(
                    "kyocho dsm run: files with the nodes' counters may remain: {why}"
                ));
            }
            ExitCode::from(code)
        }
        Err(why) => {
            complain(&format!("kyocho dsm run: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Replaces this process by the program, as a node of the MPI job. Returns the reason if that
/// fails.
fn become_program(arguments: &RunArguments) -> String {
    if arguments.nodes.is_some() || arguments.hosts.is_some() {
        return "with --transport mpi, mpirun determines the nodes: leave out --nodes and --hosts"
            .to_owned();
    }
    if STARTED_BY_MPI.iter().all(|name| std::env::var_os(name).is_none()) {
        return "not a process of an MPI job. Use: mpirun -n N kyocho dsm run --transport mpi PROGRAM"
            .to_owned();
    }
    let this = match std::env::current_exe() {
        Ok(this) => this,
        Err(why) => return format!("cannot find the program kyocho: {why}"),
    };
    let words = command_line(&arguments.program, this.into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(how(arguments)).env(variable::TRANSPORT, "mpi");
    // The processes of a job on one host have one parent.
    command.env(variable::RUN, run_name(std::os::unix::process::parent_id()));
    format!("cannot run {}: {}", words[0].display(), command.exec())
}

/// The variables with the options of the nodes.
pub(super) fn how(arguments: &RunArguments) -> Vec<(&'static str, String)> {
    let scheme = match arguments.scheme {
        LockScheme::Manager => "manager",
        LockScheme::Holder => "holder",
    };
    let mut variables = vec![
        (variable::SCHEME, scheme.to_owned()),
        (variable::DEADLINE_MS, arguments.deadline_ms.to_string()),
    ];
    let detection = arguments.detection.map(|way| (variable::DETECTION, way.to_string()));
    variables.extend(detection);
    variables
}

/// The name of the counters' files of all nodes: the host's name, as far as file names permit, and
/// the number of the process that started the nodes.
pub(super) fn run_name(starter: u32) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    let host: String = host.chars().filter(plain).take(40).collect();
    format!("{host}-{starter}")
}

/// The command line of a node. A Scheme program is run by `kyocho run`.
pub(super) fn command_line(program: &[OsString], this: OsString) -> Vec<OsString> {
    let is_scheme = Path::new(&program[0]).extension().is_some_and(|kind| kind == "scm");
    let before = if is_scheme { vec![this, "run".into()] } else { Vec::new() };
    before.into_iter().chain(program.iter().cloned()).collect()
}

/// Waits for all nodes. Returns the exit code.
fn watch(mut running: Vec<Node>, deadline: Duration) -> u8 {
    let signals = signals();
    let mut code = 0;
    let mut until: Option<Instant> = None;
    while !running.is_empty() {
        let mut gone = Vec::new();
        running.retain_mut(|node| {
            // An error means that the child was waited for elsewhere.
            let Some(status) = node.child.try_wait().transpose() else { return true };
            let failed = status.map_or(Some(1), |status| failure(node.rank, status));
            code = code.max(failed.unwrap_or(0));
            // The other nodes notice the death by themselves, and can save their data.
            let patience = failed.map(|_| Instant::now() + deadline + GRACE);
            until = until.or(patience);
            gone.push(node.rank);
            false
        });
        // Nodes that are still joining cannot notice it by themselves.
        for node in &mut running {
            gone.iter().for_each(|rank| node.report_end(*rank));
        }
        if let Ok(signal) = signals.recv_timeout(LOOK_EVERY) {
            (code, until) = (128 + signal as u8, Some(Instant::now()));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            complain("kyocho dsm run: ending the remaining nodes");
            running.drain(..).for_each(|mut node| node.end());
        }
    }
    code
}

/// Receives the signals sent to this process. The receiver never disconnects.
fn signals() -> Receiver<i32> {
    let (sender, receiver) = mpsc::channel();
    let kept = sender.clone();
    match Signals::new([SIGHUP, SIGINT, SIGTERM]) {
        Ok(mut signals) => drop(thread::spawn(move || {
            signals.forever().try_for_each(|signal| sender.send(signal))
        })),
        Err(why) => complain(&format!("kyocho dsm run: cannot handle signals: {why}")),
    }
    // The second sender keeps the channel open, so that the wait for a signal takes its time even
    // if none can arrive.
    core::mem::forget(kept);
    receiver
}

/// Reports how a node ended, if it failed. Returns its exit code.
fn failure(rank: u16, status: ExitStatus) -> Option<u8> {
    if status.success() {
        return None;
    }
    if let Some(signal) = status.signal() {
        complain(&format!("kyocho dsm run: node {rank} was ended by signal {signal}"));
        return Some(128 + signal as u8);
    }
    let code = status.code().unwrap_or(1);
    complain(&format!("kyocho dsm run: node {rank} ended with exit code {code}"));
    Some(code as u8)
}
