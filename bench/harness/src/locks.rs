//! Paper 0: the cost of test-and-set by each method (tables 1 and 2, figures 12 and 13), and of
//! locks and their peers.
//!
//! One program, `bench/locks`, times small things side by side and prints ratios of one run; a
//! round runs it once. Producers and consumers run method after method in each round;
//! microprocesses and Go's goroutines are measured with the peers of the thread workloads.

mod footprint;
mod plot;
mod report;

use crate::progress::Progress;
use crate::threads::system::{Built, Outcome, build_all, chosen};
use crate::threads::workload::Workload;
use crate::{Options, Part, build, process};
use report::{Curve, Report};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN_SECONDS_MAX: u32 = 120;
/// The methods of figure 13 on kernel threads; the system call is the paper's baseline.
const METHODS: [&str; 5] = ["system-call", "rseq", "atomics", "signals-blocked", "lamport"];
/// Producers, and as many consumers.
pub const CROWDS: [u64; 6] = [2, 4, 8, 16, 32, 64];
/// Runs of a point of figure 13. The least and the greatest are omitted, as in the paper.
const RUNS: usize = 12;

/// Measures everything; the report's files are `locks.*`, `figure-12.svg`, `figure-13.svg`.
///
/// # Errors
/// The program cannot be built, or a check of it fails.
pub fn run(options: &Options) -> Result<Part, String> {
    let program = build_program(&options.build_into())?;
    let (peers, mut notes) = build_all(&chosen(&["kyocho".into()])?, &options.build_into());
    let (runs, millis) = if options.quick { (3, 100) } else { (RUNS, 500) };
    let steps = options.rounds() * 3 + runs * CROWDS.len() * (METHODS.len() + peers.len());
    let mut progress = Progress::new(steps);
    let mut small = Vec::new();
    for round in 1..=options.rounds() {
        for bench in ["uncontended", "operations", "revocation"] {
            progress.step(&format!("round {round}: {bench}"));
            small.extend(lines(Command::new(&program).arg(bench), round)?);
        }
        small.extend(go_mutex(&peers, round));
    }
    let mut curves: Vec<Curve> = METHODS.iter().map(|name| Curve::new(name)).collect();
    curves.extend(peers.iter().map(|peer| Curve::new(peer_name(peer))));
    for run in 1..=runs {
        for (place, &crowd) in CROWDS.iter().enumerate() {
            for (index, curve) in curves.iter_mut().enumerate() {
                progress.step(&format!("run {run}: ({crowd},{crowd}) by {}", curve.name));
                let items = match METHODS.get(index) {
                    Some(method) => items_by_method(&program, method, crowd, millis),
                    None => items_by_peer(&peers[index - METHODS.len()], crowd, millis),
                };
                match items {
                    Ok(Ok(items)) => curve.points[place].push(items),
                    Ok(Err(why)) => note(&mut notes, format!("{}: {why}", curve.name)),
                    Err(failure) => return Err(format!("{}: {failure}", curve.name)),
                }
            }
        }
    }
    drop(progress);
    let footprint = footprint::read(&program)?;
    let host = options.host.clone();
    let report = Report { host, rounds: options.rounds(), runs, small, curves, footprint, notes };
    let draw = |drawn: Result<String, Box<dyn core::error::Error>>| {
        drawn.map_err(|failure| format!("cannot draw: {failure}"))
    };
    Ok(Part {
        name: "locks",
        json: report.to_json(),
        markdown: report.to_markdown(),
        plots: vec![
            ("figure-12.svg", draw(plot::operations(&report))?),
            ("figure-13.svg", draw(plot::items(&report.curves))?),
        ],
    })
}

fn note(notes: &mut Vec<String>, text: String) {
    if !notes.contains(&text) {
        notes.push(text);
    }
}

fn build_program(into: &Path) -> Result<PathBuf, String> {
    eprintln!("bench: building locks");
    let into = into.canonicalize().map_err(|failure| failure.to_string())?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--manifest-path", "bench/locks/Cargo.toml"]);
    build::finish(cargo.arg("--target-dir").arg(&into))?;
    Ok(into.join("release/locks"))
}

/// The result lines of a run, each with its round.
fn lines(command: &mut Command, round: usize) -> Result<Vec<Value>, String> {
    let run = process::run(command)?;
    let values = run.output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(values
        .map(|mut value| {
            value["round"] = round.into();
            value
        })
        .collect())
}

fn peer_name(peer: &Built) -> &'static str {
    if peer.system.name == "kyocho" { "microprocesses" } else { peer.system.title }
}

/// Go's mutex in the shape of the other lines: its ratio is taken in the report, to xchg + store of
/// the same round.
fn go_mutex(peers: &[Built], round: usize) -> Option<Value> {
    let go = peers.iter().find(|peer| peer.system.name == "go")?;
    let Outcome::Line(line) = go.run(&Workload::new("mutex", &[], "mutex", None)) else {
        return None;
    };
    let ns = serde_json::json!({ "median": line["value"] });
    Some(
        serde_json::json!({ "bench": "uncontended", "name": "Go Mutex", "round": round, "ns": ns }),
    )
}

/// Items per second, or the reason why a method cannot run.
type Items = Result<Result<f64, String>, String>;

fn items_by_method(program: &Path, method: &str, crowd: u64, millis: u64) -> Items {
    let mut command = process::limited(program, RUN_SECONDS_MAX);
    let crowd = crowd.to_string();
    command.args(["items", method, &crowd, &crowd, &millis.to_string()]);
    let line = lines(&mut command, 0)?.pop().ok_or("printed no result")?;
    Ok(match line["value"].as_f64() {
        Some(items) => Ok(items),
        None => Err(line["unsupported"].as_str().unwrap_or("printed no value").to_owned()),
    })
}

fn items_by_peer(peer: &Built, crowd: u64, millis: u64) -> Items {
    match peer.run(&Workload::new("semaphores", &[crowd, crowd, millis], "semaphores", None)) {
        Outcome::Line(line) => Ok(line["value"].as_f64().map(|m| m * 1e6).ok_or("no value".into())),
        Outcome::Unsupported(why) => Ok(Err(why)),
        Outcome::Failed(why) => Err(why),
    }
}
