//! Paper 1, §4: calls between address spaces, beside a Unix stream socket, and beside the same gate served by a kernel thread.
//!
//! One program, `bench/gates`, times the calls of one system at a time. A round runs a system right after its baseline; a ratio is taken within the
//! round. How long a death goes unnoticed, and how long the longest of a real-time caller's calls takes, are times.

use crate::progress::Progress;
use crate::statistics::Spread;
use crate::{Options, Part, build, process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN_SECONDS_MAX: u32 = 300;

/// A comparison: who, beside whom, where, how many bytes each way, calls a round, and the mark.
struct Row {
    system: &'static str,
    baseline: &'static str,
    place: &'static str,
    bytes: u32,
    calls: u32,
    mark: &'static str,
}

const fn beside_socket(place: &'static str, bytes: u32, calls: u32, mark: &'static str) -> Row {
    Row { system: "kyocho", baseline: "unix-socket", place, bytes, calls, mark }
}

const ROWS: [Row; 7] = [
    beside_socket("same", 0, 20_000, "<= 0.35"),
    beside_socket("other", 0, 20_000, "<= 0.02"),
    beside_socket("same", 4096, 20_000, "<= 0.45"),
    beside_socket("other", 4096, 20_000, "<= 0.03"),
    beside_socket("same", 1 << 20, 1_000, "<= 0.25"),
    beside_socket("other", 1 << 20, 1_000, "<= 0.25"),
    Row {
        system: "kernel-threads",
        baseline: "kyocho",
        place: "same",
        bytes: 0,
        calls: 20_000,
        mark: ">= 6.3",
    },
];

/// Times in place of ratios: what it tells, the words that ask for it, which of its figures, and the mark.
const TIMES: [(&str, &[&str], &str, &str); 2] = [
    ("a killed server is noticed, median", &["death"], "p50", "< 1"),
    (
        "longest call of a FIFO caller beside 4 programs that spin",
        &["urgent", "4", "10000"],
        "max",
        "< 1",
    ),
];

/// Measures it all; the report's files are `gates.*`.
///
/// # Errors
/// The program cannot be built, or a run of it fails.
pub fn run(options: &Options) -> Result<Part, String> {
    let program = build_program(&options.build_into())?;
    let smaller = if options.quick { 20 } else { 1 };
    let mut progress = Progress::new(options.rounds() * (ROWS.len() + TIMES.len()));
    let mut ratios = vec![Vec::new(); ROWS.len()];
    let mut times_ns = vec![Vec::new(); TIMES.len()];
    for round in 1..=options.rounds() {
        for (row, ratios) in ROWS.iter().zip(&mut ratios) {
            progress.step(&format!("round {round}: {} bytes, {} core", row.bytes, row.place));
            let baseline_ns = call_ns(&program, row, row.baseline, smaller)?;
            ratios.push(call_ns(&program, row, row.system, smaller)? / baseline_ns);
        }
        for ((what, words, figure, _), times_ns) in TIMES.iter().zip(&mut times_ns) {
            progress.step(&format!("round {round}: {what}"));
            times_ns.extend(figure_of(&program, words, figure)?);
        }
    }
    drop(progress);
    let lines = lines(&ratios, &times_ns);
    let host = &options.host;
    let markdown = markdown(host, options.rounds(), &lines);
    let json = json!({ "host": host, "rounds": options.rounds(), "lines": lines });
    Ok(Part { name: "gates", json, markdown, plots: Vec::new() })
}

fn build_program(into: &Path) -> Result<PathBuf, String> {
    eprintln!("bench: building gates");
    let into = into.canonicalize().map_err(|failure| failure.to_string())?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--manifest-path", "bench/gates/Cargo.toml"]);
    build::finish(cargo.arg("--target-dir").arg(&into))?;
    Ok(into.join("release/gates"))
}

/// The median call of one run, in nanoseconds.
fn call_ns(program: &Path, row: &Row, system: &str, smaller: u32) -> Result<f64, String> {
    let (bytes, calls) = (row.bytes.to_string(), (row.calls / smaller).to_string());
    let words = ["call", system, row.place, &bytes, &calls];
    figure_of(program, &words, "p50")?.ok_or_else(|| format!("{system} printed no figure"))
}

/// One figure of one run; none where the host does not permit it.
fn figure_of(program: &Path, words: &[&str], figure: &str) -> Result<Option<f64>, String> {
    let mut command = process::limited(program, RUN_SECONDS_MAX);
    let run = process::run(command.args(words))?;
    let line: Option<Value> = run.output.lines().find_map(|line| serde_json::from_str(line).ok());
    Ok(line.and_then(|line| line["ns"][figure].as_f64()))
}

/// What the report says, a line each: name, median, least and greatest, unit and mark.
fn lines(ratios: &[Vec<f64>], times_ns: &[Vec<f64>]) -> Vec<Value> {
    let line = |what: String, values: &[f64], unit, mark| {
        let spread = Spread::of(values)?;
        Some(json!({ "what": what, "median": spread.median, "least": spread.least,
            "most": spread.most, "unit": unit, "mark": mark }))
    };
    let compared = ROWS.iter().zip(ratios).filter_map(|(row, ratios)| {
        let Row { system, baseline, place, bytes, mark, .. } = row;
        let what = format!("{system} over {baseline}: {bytes} bytes, {place} core");
        line(what, ratios, "ratio", *mark)
    });
    let timed = TIMES.iter().zip(times_ns).filter_map(|((what, _, _, mark), times_ns)| {
        let times_ms: Vec<f64> = times_ns.iter().map(|ns| ns / 1e6).collect();
        line((*what).into(), &times_ms, "ms", *mark)
    });
    compared.chain(timed).collect()
}

fn markdown(host: &str, rounds: usize, lines: &[Value]) -> String {
    let head = format!(
        "# Gates\n\n{host}; {rounds} rounds, median (least to greatest).\n\n| | | unit | mark |\n|---|---|---|---|\n"
    );
    lines.iter().fold(head, |text, line| {
        let number = |key: &str| line[key].as_f64().unwrap_or(f64::NAN);
        let word = |key: &str| line[key].as_str().unwrap_or_default();
        let spread =
            format!("{:.3} ({:.3} to {:.3})", number("median"), number("least"), number("most"));
        text + &format!("| {} | {spread} | {} | {} |\n", word("what"), word("unit"), word("mark"))
    })
}
