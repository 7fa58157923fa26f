//! `kyocho dsm run`: starts the nodes, waits for them, leaves none behind.
//!
//! On this host each node gets a socket that listens already, so no port can be taken in between, and what carries messages in memory: nothing of that
//! has a name, so nothing is left. On others it binds the port that
//! the file of hosts gives it. Under MPI, `mpirun` has started this command once for each node, and it becomes the program.

use core::net::SocketAddr;
use core::time::Duration;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};

use kyocho_dsm::counters;
use kyocho_dsm::launch::variable;
use kyocho_dsm::transport::{SHM_NODES_MAX, Secret, Shared};
use kyocho_sys::descriptor::{Inheritance, set_inheritance};
use kyocho_sys::prim::clock::Instant;
use kyocho_sys::prim::thread;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::dsm::hosts::{Seat, seats};
use crate::dsm::{Carrier, Keeper, RunArguments};
use crate::terminal::complain;

/// Runs programs on other hosts; as with ssh, a host and a command line are added.
const REMOTE_SHELL: &str = "KYOCHO_DSM_RSH";
/// Time for the others to notice a node's death by themselves, beyond the deadline.
const GRACE: Duration = Duration::from_secs(5);
/// So often nodes are asked whether they have ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Nodes, where nobody says how many.
const NODES_USUAL: u16 = 2;
/// Variables that tell who was started by MPI: Open MPI's and MPICH's `mpirun`, Slurm's `srun`.
const STARTED_BY_MPI: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"];

pub(crate) fn command(arguments: &RunArguments) -> ExitCode {
    if arguments.transport == Some(Carrier::Mpi) {
        complain(&format!("kyocho dsm run: {}", become_program(arguments)));
        return ExitCode::FAILURE;
    }
    match start(arguments) {
        Ok(nodes) => {
            let count = nodes.len() as u16;
            let code = watch(nodes, Duration::from_millis(arguments.deadline_ms));
            if let Err(why) = counters::forget(&run_name(std::process::id()), count) {
                complain(&format!("kyocho dsm run: counters of nodes may be left: {why}"));
            }
            ExitCode::from(code)
        }
        Err(why) => {
            complain(&format!("kyocho dsm run: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// Replaces this process by the program, as the node that MPI says; why that cannot be.
fn become_program(arguments: &RunArguments) -> String {
    if arguments.nodes.is_some() || arguments.hosts.is_some() {
        return "with --transport mpi, mpirun says how many nodes there are and where: leave out --nodes and --hosts".to_owned();
    }
    if STARTED_BY_MPI.iter().all(|name| std::env::var_os(name).is_none()) {
        return "no MPI job has started this: mpirun -n N kyocho dsm run --transport mpi PROGRAM"
            .to_owned();
    }
    let this = match std::env::current_exe() {
        Ok(this) => this,
        Err(why) => return format!("cannot find myself: {why}"),
    };
    let words = command_line(&arguments.program, this.into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(how(arguments)).env(variable::TRANSPORT, "mpi");
    // The processes of a job on one host have one parent.
    command.env(variable::RUN, run_name(std::os::unix::process::parent_id()));
    format!("cannot run {}: {}", words[0].display(), command.exec())
}

/// The variables that say how nodes work.
fn how(arguments: &RunArguments) -> Vec<(&'static str, String)> {
    let scheme = match arguments.scheme {
        Keeper::Manager => "manager",
        Keeper::Holder => "holder",
    };
    let mut variables = vec![
        (variable::SCHEME, scheme.to_owned()),
        (variable::DEADLINE_MS, arguments.deadline_ms.to_string()),
    ];
    let detection = arguments.detection.map(|way| (variable::DETECTION, way.to_string()));
    variables.extend(detection);
    variables
}

/// The variables that all nodes get.
fn common(
    arguments: &RunArguments,
    addresses: &[SocketAddr],
) -> Result<Vec<(&'static str, String)>, String> {
    let secret = Secret::random().map_err(|why| format!("no random numbers: {why}"))?;
    let list: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let mut variables = vec![
        (variable::NODES, list.join(",")),
        (variable::SECRET, secret.to_hex()),
        (variable::RUN, run_name(std::process::id())),
    ];
    variables.extend(how(arguments));
    Ok(variables)
}

/// What the counters of all nodes are found under: this host's name, as far as such a name may be, and the number of the process that starts them.
fn run_name(starter: u32) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    let host: String = host.chars().filter(plain).take(40).collect();
    format!("{host}-{starter}")
}

fn start(arguments: &RunArguments) -> Result<Vec<Child>, String> {
    let Some(file) = &arguments.hosts else { return start_here(arguments) };
    if arguments.transport == Some(Carrier::Shm) {
        return Err("--transport shm is for nodes that all run here: leave out --hosts".to_owned());
    }
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let seats = seats(&text, arguments.nodes.unwrap_or(NODES_USUAL))
        .map_err(|why| format!("{}: {why}", file.display()))?;
    let addresses: Vec<_> = seats.iter().map(Seat::address).collect::<Result<_, _>>()?;
    let variables = common(arguments, &addresses)?;
    let shell = std::env::var(REMOTE_SHELL).unwrap_or_else(|_| "ssh".to_owned());
    started(&seats, |rank, seat| {
        let mut words = shell.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("ssh"));
        command.args(words).arg(&seat.host).args(["kyocho", "dsm", "node", "--"]);
        command.args(command_line(&arguments.program, "kyocho".into())).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("cannot run {shell}: {why}"))?;
        let mut place = format!("{}={rank}\n", variable::RANK);
        variables.iter().for_each(|(name, value)| place.push_str(&format!("{name}={value}\n")));
        let mut input = child.stdin.take().ok_or("no way to tell a node its place")?;
        // One that is gone already is told of when it is waited for.
        let _told = input.write_all(format!("{place}\n").as_bytes());
        Ok(child)
    })
}

fn start_here(arguments: &RunArguments) -> Result<Vec<Child>, String> {
    let nodes = arguments.nodes.unwrap_or(NODES_USUAL);
    let bound: std::io::Result<Vec<_>> =
        (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let listeners = bound.map_err(|why| format!("no port for a node: {why}"))?;
    let addresses: std::io::Result<Vec<_>> =
        listeners.iter().map(TcpListener::local_addr).collect();
    let addresses = addresses.map_err(|why| why.to_string())?;
    let shared = shared(arguments.transport, nodes)?;
    let mut variables = common(arguments, &addresses)?;
    let descriptors: Vec<_> = shared.iter().flat_map(Shared::descriptors).collect();
    if shared.is_some() {
        let numbers: Vec<_> = descriptors.iter().map(|one| one.as_raw_fd().to_string()).collect();
        variables.push((variable::TRANSPORT, "shm".to_owned()));
        variables.push((variable::SHARED, numbers.join(",")));
    }
    let this = std::env::current_exe().map_err(|why| format!("cannot find myself: {why}"))?;
    let words = command_line(&arguments.program, this.into());
    started(&listeners, |rank, listener| {
        let inherit = |to| {
            let mut all = descriptors.iter().copied().chain([listener.as_fd()]);
            all.try_for_each(|one| set_inheritance(one, to))
                .map_err(|why| format!("cannot hand a descriptor on: {why}"))
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(variables.clone());
        command.env(variable::RANK, rank.to_string());
        command.env(variable::LISTENER, listener.as_raw_fd().to_string());
        if rank > 0 {
            command.stdin(input_again());
        }
        inherit(Inheritance::Inherited)?;
        let child =
            command.spawn().map_err(|why| format!("cannot run {}: {why}", words[0].display()));
        inherit(Inheritance::Closed)?;
        child
    })
}

/// What nodes on this host share, if memory carries their messages.
fn shared(transport: Option<Carrier>, nodes: u16) -> Result<Option<Shared>, String> {
    match transport {
        Some(Carrier::Shm) if nodes > SHM_NODES_MAX => {
            Err(format!("--transport shm is for at most {SHM_NODES_MAX} nodes: use tcp"))
        }
        None if nodes > SHM_NODES_MAX => Ok(None),
        None | Some(Carrier::Shm) => {
            let shared = Shared::new(nodes);
            shared.map(Some).map_err(|why| format!("no memory for nodes to share: {why}"))
        }
        Some(Carrier::Tcp | Carrier::Mpi) => Ok(None),
    }
}

/// What a node is started by: a Scheme program is run by this command.
fn command_line(program: &[OsString], this: OsString) -> Vec<OsString> {
    let is_scheme = Path::new(&program[0]).extension().is_some_and(|kind| kind == "scm");
    let before = if is_scheme { vec![this, "run".into()] } else { Vec::new() };
    before.into_iter().chain(program.iter().cloned()).collect()
}

/// The standard input once more, from its begin, where it is a file; nothing otherwise.
fn input_again() -> Stdio {
    let again = File::open("/proc/self/fd/0").ok();
    let file = again.filter(|again| again.metadata().is_ok_and(|about| about.is_file()));
    file.map_or_else(Stdio::null, Stdio::from)
}

/// Starts a node for each place; where one cannot be started, none stays.
fn started<T>(
    places: &[T],
    one: impl Fn(u16, &T) -> Result<Child, String>,
) -> Result<Vec<Child>, String> {
    let mut nodes: Vec<Child> = Vec::new();
    for (place, rank) in places.iter().zip(0..) {
        match one(rank, place) {
            Ok(child) => nodes.push(child),
            Err(why) => {
                nodes.iter_mut().for_each(end);
                return Err(why);
            }
        }
    }
    Ok(nodes)
}

/// Kills a node and waits for its end.
fn end(node: &mut Child) {
    // Both fail only where it has ended.
    let _killed = node.kill();
    let _waited = node.wait();
}

/// Waits for all nodes; the exit code.
fn watch(mut nodes: Vec<Child>, deadline: Duration) -> u8 {
    let signals = signals();
    let mut running: Vec<_> = nodes.iter_mut().zip(0_u16..).collect();
    let mut code = 0;
    let mut until: Option<Instant> = None;
    while !running.is_empty() {
        running.retain_mut(|(node, rank)| {
            // An error means that somebody else has waited for it.
            let Some(status) = node.try_wait().transpose() else { return true };
            let failed = status.map_or(Some(1), |status| failure(*rank, status));
            code = code.max(failed.unwrap_or(0));
            // The others learn of it by themselves, and can save what they have.
            let patience = failed.map(|_| Instant::now() + deadline + GRACE);
            until = until.or(patience);
            false
        });
        if let Ok(signal) = signals.recv_timeout(LOOK_EVERY) {
            (code, until) = (128 + signal as u8, Some(Instant::now()));
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            complain("kyocho dsm run: ending the nodes that are left");
            running.drain(..).for_each(|(node, _)| end(node));
        }
    }
    code
}

/// What this program is sent. Never ends by itself.
fn signals() -> Receiver<i32> {
    let (sender, receiver) = mpsc::channel();
    let kept = sender.clone();
    match Signals::new([SIGHUP, SIGINT, SIGTERM]) {
        Ok(mut signals) => drop(thread::spawn(move || {
            signals.forever().try_for_each(|signal| sender.send(signal))
        })),
        Err(why) => complain(&format!("kyocho dsm run: signals not handled: {why}")),
    }
    // With one sender left, waiting for a signal takes its time where none can come.
    core::mem::forget(kept);
    receiver
}

/// Tells how a node ended, if it was not well; the exit code.
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
