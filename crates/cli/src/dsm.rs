//! `kyocho dsm`: nodes of a program that shares memory, started, and what this host offers them.

mod check;
mod hosts;
mod node;
mod run;
mod start;
mod top;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use kyocho_dsm::watch::Detection;

const EXAMPLES: &str = "\
Examples:
  kyocho dsm run -n 4 ./sor 1024 1536          four nodes on this machine
  kyocho dsm run -n 2 count.scm                a Scheme program, which imports (kyocho dsm)
  kyocho dsm run -n 8 --hosts hosts.txt ./sor  on the hosts of a file, by ssh
  mpirun -n 8 kyocho dsm run --transport mpi ./sor
                                               as the processes of an MPI job
  kyocho dsm top                               what the nodes here do and wait for
  kyocho dsm check                             what this host offers

A file of hosts has one a line: NAME[:PORT] [SLOTS]. Nodes fill the slots in order, and listen
from PORT on (7700). A name that means nothing on this host is looked up on each of the others. The
program and kyocho must be installed on each, at the same paths. KYOCHO_DSM_RSH names another
remote shell than ssh: it gets a host, and in one argument a command line for a shell there.

Nodes end with this command, whatever it ends by.

Node 0 gets the standard input, and so do all on this machine where it is a file. Exit code: the greatest of all nodes', which for one that a signal
ended is 128 and the signal's number. With MPI all of that is mpirun's.";

/// Shared memory across nodes.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Dsm {
    /// Run N nodes of a program.
    #[command(after_help = EXAMPLES)]
    Run(RunArguments),
    /// Watch the nodes on this host: pages, faults, diffs, bytes, what they wait for.
    Top(TopArguments),
    /// Tell what this host offers, and what would make it better.
    Check,
    /// One node of a program, on a host that `run` has reached: reads its place from standard input.
    #[command(hide = true)]
    Node {
        /// The program and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<std::ffi::OsString>,
    },
}

/// How nodes are watched.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArguments {
    /// Once, as JSON: every figure of every node.
    #[arg(long, conflicts_with = "once")]
    pub(crate) json: bool,
    /// Once, and no more; so it is where the output is no terminal.
    #[arg(long)]
    pub(crate) once: bool,
}

/// How nodes are started.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// How many nodes; default: 2, and with mpi as many as mpirun or srun has started.
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) nodes: Option<u16>,
    /// A file of hosts; without it all nodes run here.
    #[arg(long, value_name = "FILE")]
    pub(crate) hosts: Option<PathBuf>,
    /// What carries messages; default: shm where all nodes run here and are at most 64, else tcp.
    #[arg(long, value_enum)]
    pub(crate) transport: Option<Carrier>,
    /// How writes are noticed: scan, userfault or protect; default: the best that each host permits.
    #[arg(long)]
    pub(crate) detection: Option<Detection>,
    /// Who keeps what was written under locks.
    #[arg(long, value_enum, default_value_t = Keeper::Manager)]
    pub(crate) scheme: Keeper,
    /// Silence of a node that means death, in milliseconds.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    pub(crate) deadline_ms: u64,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) program: Vec<std::ffi::OsString>,
}

/// What carries messages between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Carrier {
    /// Memory that all nodes share, on one machine.
    Shm,
    /// A TCP connection a pair.
    Tcp,
    /// MPI, among the processes that mpirun or srun has started.
    Mpi,
}

/// Who keeps a lock's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keeper {
    /// The lock's manager: paper 3's new scheme.
    Manager,
    /// The last holder: its old one.
    Holder,
}

pub(crate) fn command(command: &Dsm) -> ExitCode {
    match command {
        Dsm::Run(arguments) => run::command(arguments),
        Dsm::Top(arguments) => top::command(arguments),
        Dsm::Check => check::command(),
        Dsm::Node { program } => node::command(program),
    }
}
