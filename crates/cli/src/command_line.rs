//! The command line, as clap reads it. The doc comments of fields and variants are the help texts.

mod examples;

use crate::dsm::Dsm;
use crate::jupyter::Jupyter;
use crate::paper::Paper;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use core::time::Duration;
use kyocho_lisp::system::{CellCache, Engine, Options};
use kyocho_microprocess::control::GlobalId;
use kyocho_server::{Address, forms_of_addresses};
use kyocho_unix::{MountPoint, Network};
use std::ffi::OsString;
use std::path::PathBuf;

/// Kyocho, an operating system at user level for Linux.
///
/// Without a command, `kyocho` boots the Lisp system and gives a Scheme prompt. If standard input
/// is not a terminal, it evaluates the forms there and prints their values.
#[derive(Debug, Parser)]
#[command(name = "kyocho", version, after_help = examples::ALL, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) system: SystemArguments,
}

/// The commands that boot a Lisp system. The help of the others does not show its options.
const LISP_COMMANDS: [&str; 4] = ["run", "tour", "serve", "jupyter"];

/// The command line as clap reads it.
pub(crate) fn command() -> clap::Command {
    let command = CommandLine::command();
    let system: Vec<Arg> = command
        .get_arguments()
        .filter(|option| option.is_global_set())
        .map(|option| option.clone().hide(true))
        .collect();
    command.mut_subcommands(|command| {
        if LISP_COMMANDS.contains(&command.get_name()) { command } else { hidden(command, &system) }
    })
}

/// `command` with `options` that its help does not show. It keeps an option of its own.
fn hidden(command: clap::Command, options: &[Arg]) -> clap::Command {
    let own: Vec<_> = command.get_arguments().map(|option| option.get_id().clone()).collect();
    let new = options.iter().filter(|option| !own.contains(option.get_id())).cloned();
    command.args(new)
}

/// Reads the command line of this process. Prints help and mistakes, and exits.
pub(crate) fn read() -> CommandLine {
    let matches: ArgMatches = command().get_matches();
    CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The commands. Without one, `kyocho` gives a prompt.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a Scheme program.
    ///
    /// Its threads are microprocesses. An error without a handler is reported with its place and
    /// its callers, and the exit code is 1. `(exit N)` sets the exit code.
    #[command(after_help = examples::RUN)]
    Run {
        /// The program: R7RS Scheme in UTF-8.
        file: PathBuf,
        /// The program's arguments. `(command-line)` returns them after the program's name.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a demonstration of microprocesses, then give a prompt.
    ///
    /// The prompt is given only if standard input is a terminal.
    #[command(after_help = examples::TOUR)]
    Tour,
    /// Run an unmodified Linux or FreeBSD program under a UNIX server.
    ///
    /// With --root, the program sees only that folder and what --mount adds to it. Without --root,
    /// it has all files of this machine, with your rights.
    #[command(after_help = examples::UNIX)]
    Unix(UnixArguments),
    /// Run one Scheme system that several users share, each within limits.
    ///
    /// Each connection is a session with names and threads of its own.
    #[command(after_help = examples::SERVE)]
    Serve {
        /// The configuration: users, their limits, and addresses. Without it only you may connect.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[arg(long, value_name = "ADDRESS", help = addresses_to_listen_on())]
        listen: Vec<Address>,
    },
    /// Open a session in a Kyocho server on this machine.
    #[command(after_help = examples::CONNECT)]
    Connect {
        /// The server's socket. Default: the socket of the `kyocho serve` that you started.
        #[arg(value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Standard input is the connection to the server, standard output the terminal. The SSH
        /// service starts the command in this way.
        #[arg(long, hide = true, conflicts_with = "socket")]
        handed: bool,
    },
    /// Forward a local TCP port to a Kyocho server's nREPL socket, for an editor.
    ///
    /// This is for editors that cannot use a Unix socket. Connections of other users are refused.
    #[command(after_help = examples::NREPL_PORT)]
    NreplPort {
        /// The server's nREPL socket. Default: the one of `kyocho serve --listen nrepl`.
        #[arg(value_name = "PATH")]
        socket: Option<PathBuf>,
        /// The port; 0 chooses a free one. Its number is written to the file `.nrepl-port` in this
        /// folder, where editors look for it.
        #[arg(long, value_name = "PORT", default_value_t = 0)]
        port: u16,
    },
    /// Install or run the Scheme kernel for Jupyter notebooks.
    #[command(subcommand, after_help = examples::JUPYTER)]
    Jupyter(Jupyter),
    /// Commands for running Kyocho processes.
    #[command(flatten)]
    Control(Control),
    /// Run programs that share memory across nodes, and inspect nodes.
    #[command(subcommand)]
    Dsm(Dsm),
    /// Measure every table and figure of the five papers again, beside what they published.
    ///
    /// Writes a page that needs no network, and the values as JSON and CSV. It builds the benches of
    /// the source tree first. Measure on an idle machine.
    #[command(after_help = examples::PAPER)]
    Paper(Paper),
    /// Write manual pages and shell completions. The installation script runs this.
    #[command(hide = true)]
    Pages {
        /// The folder to write below, such as /usr/share: man/man1, bash-completion, zsh, fish.
        folder: PathBuf,
    },
}

/// Lists and controls the microprocesses of the user's running Kyocho processes.
#[derive(Debug, Subcommand)]
pub(crate) enum Control {
    /// List the microprocesses of your running Kyocho programs.
    #[command(after_help = examples::PS)]
    Ps {
        /// List only the process with this number.
        process: Option<u32>,
        /// Print every field, as JSON.
        #[arg(long, conflicts_with = "prometheus")]
        json: bool,
        /// Print the counters of each process, as text for Prometheus.
        #[arg(long)]
        prometheus: bool,
    },
    /// Watch and control the microprocesses of your running Kyocho programs.
    #[command(after_help = examples::TOP)]
    Top,
    /// Record a timeline of a Kyocho program, for Perfetto or Chrome.
    #[command(after_help = examples::TRACE)]
    Trace {
        /// How long to record a running process, in seconds.
        #[arg(long, default_value_t = 1.0, value_parser = seconds)]
        seconds: f64,
        /// The file to write.
        #[arg(short, long, value_name = "FILE", default_value = "kyocho-trace.json")]
        output: PathBuf,
        /// The number of the process. May be left out if only one Kyocho process runs.
        #[arg(conflicts_with = "program")]
        process: Option<u32>,
        /// A program and its arguments: run it and record it from start to end.
        #[arg(last = true, value_name = "PROGRAM")]
        program: Vec<OsString>,
    },
    /// Terminate microprocesses, in any state.
    ///
    /// Destructors and the `after` procedures of `dynamic-wind` run. They do not run if the
    /// microprocess loops without a call of the runtime.
    #[command(after_help = examples::KILL)]
    Kill {
        /// A microprocess as `kyocho ps` lists it: PID:NUMBER.
        #[arg(required = true, value_name = "ID")]
        targets: Vec<GlobalId>,
    },
    /// Suspend microprocesses, in any state, until `kyocho resume`.
    #[command(after_help = examples::SUSPEND)]
    Suspend {
        /// A microprocess as `kyocho ps` lists it: PID:NUMBER.
        #[arg(required = true, value_name = "ID")]
        targets: Vec<GlobalId>,
    },
    /// Continue suspended microprocesses.
    #[command(after_help = examples::RESUME)]
    Resume {
        /// A microprocess as `kyocho ps` lists it: PID:NUMBER.
        #[arg(required = true, value_name = "ID")]
        targets: Vec<GlobalId>,
    },
    /// Change the priority of a microprocess.
    #[command(after_help = examples::PRIORITY)]
    Priority {
        /// A microprocess as `kyocho ps` lists it: PID:NUMBER.
        #[arg(value_name = "ID")]
        target: GlobalId,
        /// The priority: 0 (least urgent) to 63 (most urgent).
        #[arg(value_parser = clap::value_parser!(u8).range(0..64))]
        level: u8,
    },
}

/// The options of `kyocho unix`.
#[derive(Debug, Args)]
pub(crate) struct UnixArguments {
    /// The program's root folder. Without it the program has all files of this machine.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Show the folder SRC to the program as DST; with `:ro` it cannot be changed. May be given
    /// several times.
    #[arg(long = "mount", value_name = "SRC:DST[:ro]", value_parser = mount_point)]
    mounts: Vec<MountPoint>,
    /// The network that the program can use.
    #[arg(long, value_enum, default_value_t = NetworkName::Host)]
    net: NetworkName,
    /// The operating system that the program is made for.
    #[arg(long, value_enum, default_value_t = Personality::Linux)]
    personality: Personality,
    /// Limit of the address space of each process, and of all files in memory together, in MiB.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..))]
    memory: Option<u32>,
    /// Limit of the number of processes and threads together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processes: Option<u32>,
    /// Limit of the number of open descriptors of each process.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..))]
    descriptors: Option<u32>,
    /// Limit of the processor time of all processes together, in seconds. The program is killed
    /// when it is reached.
    #[arg(long, value_name = "SECONDS", value_parser = cpu_time)]
    cpu: Option<Duration>,
    /// At the end, list the system calls of the program that are not implemented.
    #[arg(long)]
    missing: bool,
    /// List each system call: [local] if the host performed it alone, [server] if the UNIX server
    /// answered it.
    #[arg(long)]
    trace: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// The values of `--net`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum NetworkName {
    /// None, except sockets with a path, which connect to services in mounts.
    None,
    /// TCP and UDP on the loopback interface.
    Loopback,
    /// TCP and UDP on all interfaces of this machine.
    Host,
}

/// The values of `--personality`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Personality {
    /// Linux on x86-64.
    Linux,
    /// FreeBSD on amd64: static programs, such as Go builds.
    Freebsd,
}

fn mount_point(text: &str) -> Result<MountPoint, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, writable) = match parts.as_slice() {
        [source, target] => (source, target, true),
        [source, target, "ro"] => (source, target, false),
        _ => return Err("expected SRC:DST or SRC:DST:ro".to_owned()),
    };
    if !target.starts_with('/') {
        return Err(format!("DST must be an absolute path, and `{target}` is not"));
    }
    Ok(MountPoint { source: source.into(), target: target.into(), writable })
}

impl UnixArguments {
    pub(crate) fn to_options(&self) -> kyocho_unix::Options {
        kyocho_unix::Options {
            personality: match self.personality {
                Personality::Linux => kyocho_unix::Personality::Linux,
                Personality::Freebsd => kyocho_unix::Personality::FreeBsd,
            },
            root: self.root.clone(),
            mounts: self.mounts.clone(),
            network: match self.net {
                NetworkName::None => Network::None,
                NetworkName::Loopback => Network::Loopback,
                NetworkName::Host => Network::Host,
            },
            memory_max_bytes: self.memory.map(|mib| u64::from(mib) << 20),
            tasks_max: self.processes.map(|most| most as usize),
            descriptors_max: self.descriptors.map(u64::from),
            cpu_max: self.cpu,
            trace: self.trace,
            name_missing: self.missing,
        }
    }
}

fn cpu_time(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a number of seconds, more than 0".to_owned())
}

/// The help for `--listen`, with the forms of addresses.
fn addresses_to_listen_on() -> String {
    format!("An address to listen on: {}. May be given several times", forms_of_addresses())
}

/// Longest recording, in seconds. Its first events are dropped long before.
const SECONDS_MAX: f64 = 3600.0;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= SECONDS_MAX => Ok(seconds),
        _ => Err(format!("expected a number of seconds, more than 0 and up to {SECONDS_MAX}")),
    }
}

/// The options of the Lisp system. Every command accepts them, before or after its name. Commands
/// that boot no Lisp system ignore them.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Options of the Lisp system, for the prompt, run, tour, serve and jupyter"
)]
pub(crate) struct SystemArguments {
    /// The evaluator.
    #[arg(long, value_enum, default_value_t = EngineName::Machine, global = true)]
    engine: EngineName,
    /// How many cells (each holds a pair) a thread takes from the shared heap at a time: `off` (one,
    /// by a message to a service thread), a number, or `auto` (follows the thread's allocation rate).
    #[arg(long, value_name = "off|N|auto", default_value = "auto", value_parser = cell_cache, global = true)]
    cell_cache: CellCache,
    /// Number of virtual processors. Default: the number of processors that the process may use.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), global = true)]
    virtual_processors: Option<u16>,
    /// How long a thread runs before another one of its priority gets the processor, in ms.
    /// Default: 5.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..=1000), global = true)]
    time_slice: Option<u16>,
    /// Limit of the Lisp heap, in MiB. Default: 4096.
    // A default in clap would also apply to `unix`, whose option has the same name.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(8..), global = true)]
    memory: Option<u32>,
    /// A folder with libraries: (a b) is DIR/a/b.sld. May be given several times. The folders of
    /// `KYOCHO_LIBRARY_PATH`, separated by colons, are searched next, then the program's folder.
    #[arg(
        short = 'L',
        visible_short_alias = 'I',
        long = "library-path",
        value_name = "DIR",
        global = true
    )]
    library_path: Vec<PathBuf>,
    /// A package in the format of snow-fort.org, to import libraries from. May be given several
    /// times.
    #[arg(long = "package", value_name = "FILE.tgz", global = true)]
    packages: Vec<PathBuf>,
    /// Begin with the definitions that `(save-image FILE)` has saved in this file.
    #[arg(long, value_name = "FILE", global = true)]
    image: Option<PathBuf>,
}

/// The values of `--engine`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum EngineName {
    /// A compiler and a register machine: R7RS Scheme.
    Machine,
    /// Paper 4's deep-binding interpreter: a few forms, for its experiment.
    Deep,
}

fn cell_cache(text: &str) -> Result<CellCache, String> {
    match text {
        "off" => Ok(CellCache::Off),
        "auto" => Ok(CellCache::Auto),
        _ => match text.parse::<u32>() {
            Ok(cells) if (1..=32 * 1024).contains(&cells) => Ok(CellCache::Fixed(cells)),
            _ => Err("expected `off`, `auto` or a number of cells from 1 to 32768".to_owned()),
        },
    }
}

/// Default limit of the Lisp heap.
const HEAP_MIB: u32 = 4096;

/// The folders of `KYOCHO_LIBRARY_PATH`. Empty names are skipped.
fn library_path_of_environment() -> Vec<PathBuf> {
    let path = std::env::var_os("KYOCHO_LIBRARY_PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty()).collect()
}

impl SystemArguments {
    pub(crate) fn to_options(&self) -> Options {
        Options {
            engine: match self.engine {
                EngineName::Machine => Engine::Machine,
                EngineName::Deep => Engine::Deep,
            },
            cell_cache: self.cell_cache,
            memory_max_bytes: self.memory.unwrap_or(HEAP_MIB) as usize * 1024 * 1024,
            virtual_processors: self.virtual_processors.map(usize::from),
            time_slice: self.time_slice.map(|ms| Duration::from_millis(ms.into())),
            library_path: self
                .library_path
                .iter()
                .cloned()
                .chain(library_path_of_environment())
                .collect(),
            packages: self.packages.clone(),
            image: self.image.clone(),
            control: true,
            ..Options::default()
        }
    }
}
