//! Runs the thread workloads on Kyocho and its peers, interleaved, and writes them side by side.
//!
//! One round runs each workload once on each system, so that what the machine does meanwhile
//! falls on all of them; a ratio to Go is taken within a round, and its spread is over the rounds.
//! What comes out lies in `bench/out`: `threads.md`, `threads.json`, `threads.svg`,
//! `semaphores.svg`.

mod measure;
mod plot;
mod report;
mod statistics;
mod system;
mod table;
mod workload;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Thread workloads side by side: Kyocho, Go, tokio, may, Boost.Fiber, kernel threads.
///
/// Examples:
///   bench/run --quick
///   bench/run --only sieve --peers go,kyocho --rounds 9
///   bench/run --json | jq .targets
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment, name = "bench/run")]
struct Options {
    /// Two rounds of smaller work: some twenty seconds, to see that all runs
    #[arg(long)]
    quick: bool,
    /// Only these workloads (spawn_join, yield, rendezvous, sieve, semaphores, parked, blocked, preempted, urgent)
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only these systems (kyocho, go, tokio, may, boost, pthread); Go is the baseline
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Rounds; the default is 5, with --quick 2
    #[arg(long)]
    rounds: Option<usize>,
    /// Print the report as JSON instead of Markdown
    #[arg(long)]
    json: bool,
    /// Where the report goes
    #[arg(long, default_value = "bench/out")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let systems = system::chosen(&options.peers)?;
    let workloads = workload::chosen(&options.only, options.quick)?;
    let rounds = options.rounds.unwrap_or(if options.quick { 2 } else { 5 }).max(1);
    let build_into = options.out.join("build");
    let (built, skipped) = system::build_all(&systems, &build_into);
    let series = measure::interleaved(&built, &workloads, rounds);
    let report = report::Report::new(&built, &workloads, series, rounds, skipped);
    let json = format!("{:#}\n", report.to_json());
    let markdown = table::markdown(&report);
    write(options, "threads.json", &json)?;
    write(options, "threads.md", &markdown)?;
    write(options, "threads.svg", &plot::ratios(&report).map_err(|failure| failure.to_string())?)?;
    let curves = plot::semaphores(&report).map_err(|failure| failure.to_string())?;
    write(options, "semaphores.svg", &curves)?;
    print!("{}", if options.json { &json } else { &markdown });
    eprintln!("bench: written to {}", options.out.display());
    Ok(())
}

fn write(options: &Options, name: &str, text: &str) -> Result<(), String> {
    let path = options.out.join(name);
    std::fs::create_dir_all(&options.out)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|failure| format!("cannot write {}: {failure}", path.display()))
}
