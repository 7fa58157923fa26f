//! Runs the benches side by side and writes the results as Markdown, JSON and SVG.
//!
//! Eleven parts: `threads` (the workloads of papers 0 and 1 beside Go, tokio, may, Boost.Fiber and
//! kernel threads), `lisp` (programs beside compiled Guile), `cells` (paper 4's table 1 and figures
//! 3 and 4), `locks` (paper 0's tables 1 and 2 and figures 12 and 13), `pagetable` (paper 2's
//! requirements of page tables and TLBs), `gates` (calls between address spaces beside a Unix
//! socket), `dsm` (paper 3's figures and table 3), `unix` (paper 2's UNIX server compared with the
//! host alone), `sessions` (a thousand sessions of one server), `stranded` (paper 4's unused cells
//! and time slices), `lines` (sizes of sources, papers 1 and 2). A part returns its tables, its
//! figures as JSON, and its plots. `paper` runs the parts that the papers' tables and figures need.

mod build;
mod cells;
mod dsm;
mod gates;
mod host;
mod legend;
mod lines;
mod lisp;
mod locks;
mod pagetable;
mod paper;
mod process;
mod progress;
mod sessions;
mod statistics;
mod stranded;
mod threads;
mod unix;

use clap::{Parser, Subcommand, ValueEnum};
use paper::PaperOptions;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures Kyocho and its peers side by side, in interleaved runs, as ratios with their spread.
///
/// Examples:
///   bench/run --quick
///   bench/run --part threads --only sieve --peers go,kyocho --rounds 9
///   bench/run --part lisp --only fib,ctak
///   bench/run --json | jq .threads.targets
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment, name = "bench/run", args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Separate>,
    #[command(flatten)]
    options: Options,
}

/// What runs instead of the parts of the command line.
#[derive(Debug, Subcommand)]
enum Separate {
    /// Every table and figure of the five papers, beside what they published
    #[command(name = "paper")]
    Paper(PaperOptions),
}

/// What is measured, and how.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Two rounds of smaller work, to check that everything runs
    #[arg(long)]
    quick: bool,
    /// Only these parts
    #[arg(long, value_delimiter = ',')]
    part: Vec<PartName>,
    /// Only these workloads (threads: spawn_join, address_space, yield, rendezvous, sieve,
    /// sieve_messages, semaphores, parked, blocked, page_fault, preempted, urgent; lisp: the names of bench/lisp/*.scm)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these systems (threads: kyocho, go, tokio, may, boost, pthread; Go is the baseline;
    /// gates: iceoryx2, ipc-channel, tarpc, tonic, or kyocho alone)
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Rounds; the default is 5, with --quick 2
    #[arg(long)]
    rounds: Option<usize>,
    /// dsm: SOR and WATER also on two hosts with separate network stacks, if this machine permits
    /// that
    #[arg(long)]
    namespaces: bool,
    /// Print the report as JSON instead of Markdown
    #[arg(long)]
    json: bool,
    /// Directory of the report
    #[arg(long, default_value = "bench/out")]
    out: PathBuf,
    /// The machine, and its load at the start.
    #[arg(skip = host::describe())]
    host: String,
}

/// A part that can be measured separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartName {
    /// Threads beside Go, tokio, may, Boost.Fiber and kernel threads
    Threads,
    /// Lisp programs beside compiled Guile
    Lisp,
    /// Paper 4: the gain from the cell cache
    Cells,
    /// Paper 0: test-and-set by each method, and locks beside their peers
    Locks,
    /// Paper 2: page tables and TLBs for 64-bit spaces
    Pagetable,
    /// Paper 1: calls between address spaces, beside a Unix stream socket and other libraries
    Gates,
    /// Paper 3: shared memory across nodes: locks, pages, barriers, SOR and WATER
    Dsm,
    /// Paper 2: programs under the UNIX server, beside the same programs run natively
    Unix,
    /// Paper 4: a thousand sessions of one server
    Sessions,
    /// Papers 1 and 2: lines of a scheduler, of machine-dependent code, of the UNIX personalities
    Lines,
    /// Paper 4: unused cells in the caches of waiting threads, and time slices
    Stranded,
}

/// The results of one part.
#[derive(Debug)]
pub struct Part {
    /// The name of its files, and its key in the whole JSON report.
    pub name: &'static str,
    /// Everything, as JSON.
    pub json: Value,
    /// The tables.
    pub markdown: String,
    /// File names and SVG.
    pub plots: Vec<(&'static str, String)>,
}

/// Measures a part.
type TimerClock = fn(&Options) -> Result<Part, String>;

/// All parts, in the order in which they run.
const ALL: [(PartName, TimerClock); 11] = [
    (PartName::Threads, threads::run),
    (PartName::Lisp, lisp::run),
    (PartName::Cells, cells::run),
    (PartName::Locks, locks::run),
    (PartName::Pagetable, pagetable::run),
    (PartName::Gates, gates::run),
    (PartName::Dsm, dsm::run),
    (PartName::Unix, unix::run),
    (PartName::Sessions, sessions::run),
    (PartName::Stranded, stranded::run),
    (PartName::Lines, lines::run),
];

/// Measures one part.
///
/// # Errors
/// As its own `run`.
fn measure(name: PartName, options: &Options) -> Result<Part, String> {
    std::fs::create_dir_all(options.build_into())
        .map_err(|failure| format!("cannot make {}: {failure}", options.out.display()))?;
    let (_, measure) = ALL.iter().find(|(other, _)| *other == name).expect("it is a part");
    measure(options)
}

impl Options {
    /// What a part is asked for `kyocho paper`: these workloads, systems and rounds, with programs
    /// built where `bench/run` builds them.
    fn of_paper(quick: bool, only: Vec<String>, peers: Vec<String>, rounds: usize) -> Self {
        let (part, rounds, out) = (Vec::new(), Some(rounds), PathBuf::from("bench/out"));
        Self {
            quick,
            part,
            only,
            peers,
            rounds,
            namespaces: false,
            json: false,
            out,
            host: host::describe(),
        }
    }

    /// Number of rounds.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 2 } else { 5 }).max(1)
    }

    /// Where the programs under measurement are built.
    pub fn build_into(&self) -> PathBuf {
        self.out.join("build")
    }

    fn includes(&self, part: PartName) -> bool {
        match (self.part.is_empty(), self.only.is_empty()) {
            (true, true) => true,
            // Names without a part are those of the thread workloads.
            (true, false) => part == PartName::Threads,
            (false, _) => self.part.contains(&part),
        }
    }
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let done = match &line.command {
        Some(Separate::Paper(options)) => paper::run(options),
        None => run(&line.options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut whole = serde_json::Map::new();
    for (name, _) in ALL.into_iter().filter(|(name, _)| options.includes(*name)) {
        let part = measure(name, options)?;
        write(&options.out, &format!("{}.json", part.name), &format!("{:#}\n", part.json))?;
        write(&options.out, &format!("{}.md", part.name), &part.markdown)?;
        for (file, svg) in &part.plots {
            write(&options.out, file, svg)?;
        }
        if !options.json {
            println!("{}", part.markdown);
        }
        whole.insert(part.name.into(), part.json);
    }
    if options.json {
        println!("{:#}", Value::Object(whole));
    }
    eprintln!("bench: written to {}", options.out.display());
    Ok(())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .map_err(|failure| format!("cannot make {}: {failure}", folder.display()))?;
    let path = folder.join(name);
    std::fs::write(&path, text)
        .map_err(|failure| format!("cannot write {}: {failure}", path.display()))
}
