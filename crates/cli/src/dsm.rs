//! `kyocho dsm`: starts nodes that share memory, shows them, and checks what the host offers.

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
  kyocho dsm check                             what this host offers
  kyocho dsm run -n 4 ./sor 1024 1536          four nodes on this machine
  kyocho dsm top                               what these nodes do and wait for

A node is one process of the program. `kyocho dsm run --help` has more examples.
More: docs/tutorials/cluster.md, docs/dsm.md.";

const RUN_EXAMPLES: &str = "\
Examples:
  kyocho dsm run -n 4 ./sor 1024 1536          four nodes on this machine
  kyocho dsm run -n 2 count.scm                a Scheme program that imports (kyocho dsm)
  kyocho dsm run -n 8 --hosts hosts.txt ./sor  on the hosts that a file lists, by ssh
  mpirun -n 8 kyocho dsm run --transport mpi ./sor
                                               as the processes of an MPI job

Hosts: each line of the file is NAME[:PORT] [SLOTS]. A host runs as many nodes as it has slots (1
unless given). Its nodes listen on PORT (7700 unless given) and the ports after it. If this machine
does not know a name, each node looks it up on its own host. The program and kyocho must exist on
each host, at the same paths. KYOCHO_DSM_RSH names a command to use in place of ssh; its arguments
are a host and one command line for a shell there.

Standard input: node 0 reads it. If it is a file, all nodes on this machine read it.

The nodes end when this command ends. The exit code is the greatest one of all nodes. It is 128 + N
for a node that signal N ended. In an MPI job, mpirun decides all this.
More: docs/tutorials/cluster.md, docs/dsm.md.";

const TOP_EXAMPLES: &str = "\
Examples:
  kyocho dsm top                               live; q quits
  kyocho dsm top --once                        print the table once
  kyocho dsm top --json                        every counter, for other programs

More: docs/dsm.md.";

const CHECK_EXAMPLES: &str = "\
Each line names something that nodes use, and whether this host has it.
More: docs/dsm.md.";

/// The commands of `kyocho dsm`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Dsm {
    /// Run a program as several nodes that share memory.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Watch the nodes on this host: pages, faults, diffs, bytes, and what they wait for.
    #[command(after_help = TOP_EXAMPLES)]
    Top(TopArguments),
    /// Show what this host offers to nodes, and what would improve it.
    #[command(after_help = CHECK_EXAMPLES)]
    Check,
    /// Run one node of a program, on a host that `run` has reached. Its settings come by standard
    /// input.
    #[command(hide = true)]
    Node {
        /// The program and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        program: Vec<std::ffi::OsString>,
    },
}

/// The options of `kyocho dsm top`.
#[derive(Debug, clap::Args)]
pub(crate) struct TopArguments {
    /// Print every counter of every node once, as JSON.
    #[arg(long, conflicts_with = "once")]
    pub(crate) json: bool,
    /// Print the table once. This is the default if standard output is not a terminal.
    #[arg(long)]
    pub(crate) once: bool,
}

/// The options of `kyocho dsm run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// Number of nodes. Default: 2; in an MPI job, the number of its processes.
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) nodes: Option<u16>,
    /// A file that lists hosts. Without it all nodes run on this machine.
    #[arg(long, value_name = "FILE")]
    pub(crate) hosts: Option<PathBuf>,
    /// The transport of messages. Default: shm if at most 64 nodes run, all on this machine; tcp
    /// otherwise.
    #[arg(long, value_enum)]
    pub(crate) transport: Option<TransportKind>,
    /// How a node detects writes to shared memory: scan, userfault or protect. Default: the first
    /// of these that each host permits.
    #[arg(long)]
    pub(crate) detection: Option<Detection>,
    /// The node that keeps the updates made under a lock.
    #[arg(long, value_enum, default_value_t = LockScheme::Manager)]
    pub(crate) scheme: LockScheme,
    /// Time without a message after which a node counts as dead, in milliseconds.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=3_600_000))]
    pub(crate) deadline_ms: u64,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) program: Vec<std::ffi::OsString>,
}

/// The values of `--transport`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportKind {
    /// Rings in memory that all nodes map, on one machine.
    Shm,
    /// A TCP connection between each two nodes.
    Tcp,
    /// MPI, between the processes that mpirun or srun has started.
    Mpi,
}

/// The values of `--scheme`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LockScheme {
    /// The lock's manager (paper 3's new scheme).
    Manager,
    /// The last holder of the lock (paper 3's old scheme).
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
