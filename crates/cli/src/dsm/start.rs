//! Starts the nodes: on this host as child processes, on other hosts by a remote shell. Each has a
//! connection to this process. The connection ends when this process ends.
#![expect(unsafe_code, reason = "a call in the child, before it becomes the program")]

use core::net::SocketAddr;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Child, Command, Stdio};

use kyocho_dsm::launch::{end_signal, ended, variable};
use kyocho_dsm::transport::{SHM_NODES_MAX, Secret, Shared};
use kyocho_sys::descriptor::{Inheritance, set_inheritance};
use kyocho_sys::process::signal_at_end_of_parent;

use crate::dsm::hosts::{NodeHost, node_hosts};
use crate::dsm::run::{command_line, how, run_name};
use crate::dsm::{RunArguments, TransportKind};

/// Names the command that runs programs on other hosts, in place of ssh. Its arguments are a host
/// and one command line.
const REMOTE_SHELL: &str = "KYOCHO_DSM_RSH";
/// Default number of nodes.
const NODES_USUAL: u16 = 2;

/// A node that was started.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) rank: u16,
    pub(super) child: Child,
    line: Line,
}

/// The connection by which a node hears from the launcher.
#[derive(Debug)]
enum Line {
    Here(io::PipeWriter),
    Remote(std::process::ChildStdin),
}

impl Node {
    /// Reports to the node that another node has ended.
    pub(super) fn report_end(&mut self, rank: u16) {
        let report = ended(rank);
        // If this node has ended as well, it need not know.
        let _written = match &mut self.line {
            Line::Here(line) => line.write_all(report.as_bytes()),
            Line::Remote(line) => line.write_all(report.as_bytes()),
        };
    }

    /// Kills the node and waits for its end.
    pub(super) fn end(&mut self) {
        // Both fail only if the node has ended.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// The environment variables that all nodes get.
fn common(
    arguments: &RunArguments,
    places: &[String],
) -> Result<Vec<(&'static str, String)>, String> {
    let secret =
        Secret::random().map_err(|why| format!("the host has no random numbers: {why}"))?;
    let mut variables = vec![
        (variable::NODES, places.join(",")),
        (variable::SECRET, secret.to_hex()),
        (variable::RUN, run_name(std::process::id())),
    ];
    variables.extend(how(arguments));
    Ok(variables)
}

/// Starts all nodes, or none.
pub(super) fn start(arguments: &RunArguments) -> Result<Vec<Node>, String> {
    let Some(file) = &arguments.hosts else { return start_here(arguments) };
    if arguments.transport == Some(TransportKind::Shm) {
        return Err(
            "--transport shm is for nodes on this machine only: leave out --hosts, or use tcp"
                .to_owned(),
        );
    }
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let hosts = node_hosts(&text, arguments.nodes.unwrap_or(NODES_USUAL))
        .map_err(|why| format!("{}: {why}", file.display()))?;
    let places: Vec<_> = hosts.iter().map(NodeHost::place).collect();
    let variables = common(arguments, &places)?;
    let shell = std::env::var(REMOTE_SHELL).unwrap_or_else(|_| "ssh".to_owned());
    let there = remote_command(arguments)?;
    started(&hosts, |rank, at| {
        let mut words = shell.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("ssh"));
        command.args(words).arg(&at.host).arg(&there).stdin(Stdio::piped());
        let mut child = command.spawn().map_err(|why| format!("cannot run {shell}: {why}"))?;
        let mut place = format!("{}={rank}\n", variable::RANK);
        variables.iter().for_each(|(name, value)| place.push_str(&format!("{name}={value}\n")));
        let mut line = child.stdin.take().ok_or("no connection to the remote shell")?;
        // If the node has ended already, waiting for it reports that.
        let _written = line.write_all(format!("{place}\n").as_bytes());
        Ok(Node { rank, child, line: Line::Remote(line) })
    })
}

/// The command line for the shell of another host, as one argument. A remote shell joins its
/// arguments by spaces, and the shell there splits them again.
fn remote_command(arguments: &RunArguments) -> Result<OsString, String> {
    let before = ["kyocho", "dsm", "node", "--"].map(OsString::from);
    let program = command_line(&arguments.program, "kyocho".into());
    let words: Vec<_> = before.into_iter().chain(program).collect();
    let line = shlex::bytes::try_join(words.iter().map(|word| word.as_bytes()));
    line.map(OsString::from_vec).map_err(|_| "an argument contains a zero byte".to_owned())
}

fn start_here(arguments: &RunArguments) -> Result<Vec<Node>, String> {
    let nodes = arguments.nodes.unwrap_or(NODES_USUAL);
    let bound: io::Result<Vec<_>> = (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let listeners = bound.map_err(|why| format!("no port for a node: {why}"))?;
    let addresses: io::Result<Vec<_>> = listeners.iter().map(TcpListener::local_addr).collect();
    let addresses = addresses.map_err(|why| why.to_string())?;
    let places: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
    let shared = shared(arguments.transport, nodes)?;
    let mut variables = common(arguments, &places)?;
    let descriptors: Vec<_> = shared.iter().flat_map(Shared::descriptors).collect();
    if shared.is_some() {
        let numbers: Vec<_> = descriptors.iter().map(|one| one.as_raw_fd().to_string()).collect();
        variables.push((variable::TRANSPORT, "shm".to_owned()));
        variables.push((variable::SHARED, numbers.join(",")));
    }
    let this =
        std::env::current_exe().map_err(|why| format!("cannot find the program kyocho: {why}"))?;
    let words = command_line(&arguments.program, this.into());
    started(&listeners, |rank, listener| {
        let (reader, line) = io::pipe().map_err(|why| format!("no connection to a node: {why}"))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(variables.clone());
        command.env(variable::RANK, rank.to_string());
        command.env(variable::LISTENER, listener.as_raw_fd().to_string());
        command.env(variable::LAUNCHER, reader.as_raw_fd().to_string());
        if rank > 0 {
            command.stdin(input_again());
        }
        ends_with_this(&mut command);
        let handed: Vec<_> =
            descriptors.iter().copied().chain([listener.as_fd(), reader.as_fd()]).collect();
        let child = spawned(&mut command, &handed)?;
        Ok(Node { rank, child, line: Line::Here(line) })
    })
}

/// Makes the host end the program when this process ends. Once the program has joined, it watches
/// its connection instead.
fn ends_with_this(command: &mut Command) {
    let (signal, this) = (end_signal(), std::process::id());
    let ask = move || {
        signal_at_end_of_parent(signal)
            .map_err(|why| io::Error::from_raw_os_error(why.number()))?;
        // This process may have ended before the call.
        if parent_id() == this { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls, allocates nothing, and
    // touches no memory that another thread may have been changing.
    unsafe { command.pre_exec(ask) };
}

/// Starts a program that inherits these descriptors. No other program inherits them.
fn spawned(command: &mut Command, handed: &[BorrowedFd<'_>]) -> Result<Child, String> {
    let inherit = |to| {
        let mut all = handed.iter();
        all.try_for_each(|one| set_inheritance(*one, to))
            .map_err(|why| format!("cannot pass on a descriptor: {why}"))
    };
    inherit(Inheritance::Inherited)?;
    let program = command.get_program().display().to_string();
    let child = command.spawn().map_err(|why| format!("cannot run {program}: {why}"));
    inherit(Inheritance::Closed)?;
    child
}

/// The memory that nodes on this host share for messages. `None` if another transport is used.
fn shared(transport: Option<TransportKind>, nodes: u16) -> Result<Option<Shared>, String> {
    match transport {
        Some(TransportKind::Shm) if nodes > SHM_NODES_MAX => {
            Err(format!("--transport shm is for at most {SHM_NODES_MAX} nodes: use tcp"))
        }
        None if nodes > SHM_NODES_MAX => Ok(None),
        None | Some(TransportKind::Shm) => {
            let shared = Shared::new(nodes);
            shared.map(Some).map_err(|why| format!("no memory for nodes to share: {why}"))
        }
        Some(TransportKind::Tcp | TransportKind::Mpi) => Ok(None),
    }
}

/// Standard input opened again at its beginning, if it is a file. Otherwise an empty input.
fn input_again() -> Stdio {
    let again = File::open("/proc/self/fd/0").ok();
    let file = again.filter(|again| again.metadata().is_ok_and(|about| about.is_file()));
    file.map_or_else(Stdio::null, Stdio::from)
}

/// Starts a node for each place. If one cannot be started, none remains.
fn started<T>(
    places: &[T],
    one: impl Fn(u16, &T) -> Result<Node, String>,
) -> Result<Vec<Node>, String> {
    let mut nodes: Vec<Node> = Vec::new();
    for (place, rank) in places.iter().zip(0..) {
        match one(rank, place) {
            Ok(node) => nodes.push(node),
            Err(why) => {
                nodes.iter_mut().for_each(Node::end);
                return Err(why);
            }
        }
    }
    Ok(nodes)
}
