//! The command line, as clap reads it. Help texts live here and teach by example.

use crate::dsm::Dsm;
use crate::jupyter::Jupyter;
use clap::{Args, Parser, Subcommand};
use core::time::Duration;
use kyocho_lisp::system::{CellCache, Engine, Options};
use kyocho_microprocess::control::GlobalId;
use kyocho_server::{Address, forms_of_addresses};
use kyocho_unix::{MountPoint, Network};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  kyocho                                 boot and give a Lisp prompt
  kyocho run examples/sieve.scm 700      run a program; (command-line) gives its arguments
  kyocho tour                            boot, show what microprocesses do, then a prompt
  echo '(+ 40 2)' | kyocho               evaluate what comes on standard input, print the values
  kyocho unix --net none -- sh           a shell under a UNIX server of its own, without a network
  kyocho serve; kyocho connect           many users, each within limits
  kyocho jupyter install --user          notebooks in Scheme
  kyocho top                             watch the threads of all running systems
  kyocho ps --json; kyocho kill 4711:12  list them; end one
  kyocho trace -- kyocho run examples/sieve.scm
                                         a timeline for ui.perfetto.dev
  kyocho dsm run -n 4 ./sor              four nodes that share memory
  kyocho --engine deep --cell-cache off run ack.scm
                                         paper 4's evaluator, every cons a message

At the prompt: ,help lists commands, Tab completes bound names, Ctrl-C stops an evaluation, Ctrl-D leaves.
Exit codes: 0 fine, 1 the program failed, 2 the command line was wrong.";

/// An operating system at user level: microprocesses under a Lisp prompt.
#[derive(Debug, Parser)]
#[command(name = "kyocho", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) system: SystemArguments,
}

/// What to do; nothing means: give a prompt.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a Scheme program.
    Run {
        /// The program: R7RS Scheme, UTF-8.
        file: PathBuf,
        /// What `(command-line)` gives after the program's name.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Boot, run a program that shows what microprocesses do, then give a prompt if this is a terminal.
    Tour,
    /// Run an unmodified Linux or FreeBSD program under a UNIX server of its own.
    Unix(UnixArguments),
    /// Let users in: each has sessions of his own, within limits.
    Serve {
        /// Who may come in and what each may have (docs/serve.md); without, only you.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[arg(long, value_name = "WHERE", help = where_to_listen())]
        listen: Vec<Address>,
    },
    /// Open a session in a server of this machine.
    Connect {
        /// The server's socket; by default where `kyocho serve` listens.
        #[arg(value_name = "PATH")]
        socket: Option<PathBuf>,
        /// The connection is standard input, the terminal standard output: how the SSH service starts this.
        #[arg(long, hide = true, conflicts_with = "socket")]
        handed: bool,
    },
    /// Open a port for your editors that know TCP alone, to a server's nREPL socket; other users are refused.
    NreplPort {
        /// The server's socket; by default where `kyocho serve --listen nrepl` listens.
        #[arg(value_name = "PATH")]
        socket: Option<PathBuf>,
        /// The port; by default a free one. Editors find it in `.nrepl-port`.
        #[arg(long, value_name = "PORT", default_value_t = 0)]
        port: u16,
    },
    /// A kernel for Jupyter notebooks: make it known, run it.
    #[command(subcommand)]
    Jupyter(Jupyter),
    /// What concerns address spaces that run already.
    #[command(flatten)]
    Control(Control),
    /// Shared memory across nodes: start programs, look at this host.
    #[command(subcommand)]
    Dsm(Dsm),
    /// Write manual pages and completions: how an installation makes them.
    #[command(hide = true)]
    Pages {
        /// Where they go, as in /usr/share: man/man1, bash-completion, zsh, fish.
        folder: PathBuf,
    },
}

/// Looking at microprocesses of other processes of yours, and giving them orders.
#[derive(Debug, Subcommand)]
pub(crate) enum Control {
    /// List the microprocesses of your address spaces.
    Ps {
        /// Only this process.
        process: Option<u32>,
        /// As JSON: everything there is to know.
        #[arg(long, conflicts_with = "prometheus")]
        json: bool,
        /// The counters, as text for Prometheus.
        #[arg(long)]
        prometheus: bool,
    },
    /// Watch the microprocesses of all your address spaces; kill, suspend, resume, change priorities.
    Top,
    /// Write a timeline that Perfetto and Chrome open, of a process or of a program to run.
    Trace {
        /// How long, in seconds, for a process that runs.
        #[arg(long, default_value_t = 1.0, value_parser = seconds)]
        seconds: f64,
        /// The file to write.
        #[arg(short, long, value_name = "FILE", default_value = "kyocho-trace.json")]
        output: PathBuf,
        /// The process; not needed where there is one only.
        #[arg(conflicts_with = "program")]
        process: Option<u32>,
        /// A program and its arguments, recorded to its end.
        #[arg(last = true, value_name = "PROGRAM")]
        program: Vec<OsString>,
    },
    /// End microprocesses, whatever they are doing.
    Kill {
        /// As `kyocho ps` lists them: PID:LOCAL.
        #[arg(required = true, value_name = "ID")]
        targets: Vec<GlobalId>,
    },
    /// Make microprocesses stand still.
    Suspend {
        /// As `kyocho ps` lists them: PID:LOCAL.
        #[arg(required = true, value_name = "ID")]
        targets: Vec<GlobalId>,
    },
    /// Let suspended microprocesses go on.
    Resume {
        /// As `kyocho ps` lists them: PID:LOCAL.
        #[arg(required = true, value_name = "ID")]
        targets: Vec<GlobalId>,
    },
    /// Change the priority of a microprocess.
    Priority {
        /// As `kyocho ps` lists it: PID:LOCAL.
        #[arg(value_name = "ID")]
        target: GlobalId,
        /// 0 (least urgent) to 63.
        #[arg(value_parser = clap::value_parser!(u8).range(0..64))]
        level: u8,
    },
}

/// What an instance of the UNIX server shall be.
#[derive(Debug, Args)]
pub(crate) struct UnixArguments {
    /// The folder that is its root; all of this machine's files otherwise.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// A folder to be seen elsewhere, for reading with `:ro`; may be given several times.
    #[arg(long = "mount", value_name = "SRC:DST[:ro]", value_parser = mount_point)]
    mounts: Vec<MountPoint>,
    /// What networks there are.
    #[arg(long, value_enum, default_value_t = NetworkName::Host)]
    net: NetworkName,
    /// Whose programs they are.
    #[arg(long, value_enum, default_value_t = Personality::Linux)]
    personality: Personality,
    /// Most address space of each process, and most memory of files in memory, in MiB.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..))]
    memory: Option<u32>,
    /// Most processes and threads, together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processes: Option<u32>,
    /// Most open files and other descriptors of each process.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..))]
    descriptors: Option<u32>,
    /// Most processor time of all processes, together, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = cpu_time)]
    cpu: Option<Duration>,
    /// Name, at the end, the system calls that were asked for and are not there.
    #[arg(long)]
    missing: bool,
    /// Show each system call: [local] was the host's alone, [server] was answered here.
    #[arg(long)]
    trace: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// The networks by name.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum NetworkName {
    /// None but between its own processes.
    None,
    /// This machine's loopback interface.
    Loopback,
    /// This machine's.
    Host,
}

/// Whose system calls programs make.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Personality {
    /// Linux on x86-64.
    Linux,
    /// FreeBSD on amd64: static programs, as Go makes them.
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
        return Err(format!("`{target}` is no absolute path"));
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

/// What help says of the places where a server can listen.
fn where_to_listen() -> String {
    format!("Where to listen: {}; may be given several times", forms_of_addresses())
}

/// The longest recording, in seconds: older moments are dropped long before.
const SECONDS_MAX: f64 = 3600.0;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= SECONDS_MAX => Ok(seconds),
        _ => Err(format!("expected a number of seconds, more than 0 and up to {SECONDS_MAX}")),
    }
}

/// How the system is booted. Every command takes these, so that they may stand before it and behind it;
/// those that boot no Lisp system do nothing with them.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Options of the Lisp system, for the prompt, run, tour, serve and jupyter"
)]
pub(crate) struct SystemArguments {
    /// Which evaluator: the compiled machine, or paper 4's deep-binding interpreter.
    #[arg(long, value_enum, default_value_t = EngineName::Machine, global = true)]
    engine: EngineName,
    /// Cells a thread takes from the shared heap at a time: `off` asks for each, a number, or `auto`.
    #[arg(long, value_name = "off|N|auto", default_value = "auto", value_parser = cell_cache, global = true)]
    cell_cache: CellCache,
    /// Virtual processors; default: the processors this process may use.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), global = true)]
    virtual_processors: Option<u16>,
    /// How long a thread runs while equals wait, in ms; default: 5.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..=1000), global = true)]
    time_slice: Option<u16>,
    /// Most memory the Lisp heap may take, in MiB; default: 4096.
    // No default of clap's: that would also be the one of `unix`, whose option has the same name.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(8..), global = true)]
    memory: Option<u32>,
    /// A folder to look for libraries in, as (a b) in DIR/a/b.sld; may be given several times. Those of `KYOCHO_LIBRARY_PATH`, with
    /// colons between, come after; the folder of the program comes last.
    #[arg(
        short = 'L',
        visible_short_alias = 'I',
        long = "library-path",
        value_name = "DIR",
        global = true
    )]
    library_path: Vec<PathBuf>,
    /// A package whose libraries can be imported, as snow-fort.org has them; may be given several times.
    #[arg(long = "package", value_name = "FILE.tgz", global = true)]
    packages: Vec<PathBuf>,
    /// A world that `(save-image FILE)` has saved, to begin with.
    #[arg(long, value_name = "FILE", global = true)]
    image: Option<PathBuf>,
}

/// The engines by name.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum EngineName {
    /// The compiled register machine.
    Machine,
    /// Paper 4's deep-binding interpreter.
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

/// Most memory of the Lisp heap, where nothing else is asked for.
const HEAP_MIB: u32 = 4096;

/// The folders that the environment names; an empty name is none.
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
