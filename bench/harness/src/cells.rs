//! Paper 4: the gain from caching cells for allocation (table 1, figures 3 and 4).
//!
//! The deep-binding engine runs the paper's two programs with every size of cache; a program prints
//! its own user, system and real time. One round runs every size once.

mod plot;
mod report;

use crate::progress::Progress;
use crate::{Options, Part, lisp, process};
use report::{Curve, Program, Report, Sample};
use std::path::{Path, PathBuf};

const RUN_SECONDS_MAX: u32 = 60;
/// No cache, the sizes of the figures, and one that adapts to the thread's rate.
const CACHES: [&str; 15] = [
    "off", "1", "2", "5", "10", "20", "50", "100", "200", "500", "1000", "2000", "3000", "4096",
    "auto",
];
/// The caches on the compiled machine, for programs that allocate.
const MACHINE_CACHES: [&str; 8] = ["off", "16", "64", "256", "1024", "4096", "32768", "auto"];

/// Measures the paper's programs; the report's files are `cells.*`, `figure-3.svg`, `figure-4.svg`
/// and `cells-machine.svg`.
///
/// # Errors
/// The command cannot be built, or a program fails on it.
pub fn run(options: &Options) -> Result<Part, String> {
    let out = options.out.canonicalize().map_err(|failure| failure.to_string())?;
    let kyocho = lisp::build_kyocho(&out.join("build"))?;
    let rounds = if options.quick { 2 } else { options.rounds() * 3 };
    let machine_rounds = options.rounds();
    let mut progress =
        Progress::new(rounds * CACHES.len() * 2 + machine_rounds * MACHINE_CACHES.len() * 2);
    let mut deep = |program: Program| -> Result<Curve, String> {
        let file = with_statistics(program, &out)?;
        curve(program, &CACHES, rounds, &mut progress, |cache| deep_sample(&kyocho, &file, cache))
    };
    let quicksort = deep(Program::QUICKSORT)?;
    let ackermann = deep(Program::ACKERMANN)?;
    let mut machine = |program: Program| {
        curve(program, &MACHINE_CACHES, machine_rounds, &mut progress, |cache| {
            machine_sample(&kyocho, program, cache)
        })
    };
    let allocating = [machine(Program::TREES), machine(Program::LONG_SORT)];
    drop(progress);
    let host = options.host.clone();
    let report = Report { host, rounds, quicksort, ackermann, allocating };
    let draw = |drawn: Result<String, Box<dyn core::error::Error>>| {
        drawn.map_err(|failure| format!("cannot draw: {failure}"))
    };
    Ok(Part {
        name: "cells",
        json: report.to_json(),
        markdown: report.to_markdown(),
        plots: vec![
            (
                "figure-3.svg",
                draw(plot::times(&report.quicksort, "Paper 4, figure 3: QuickSort of 72 numbers"))?,
            ),
            (
                "figure-4.svg",
                draw(plot::times(&report.ackermann, "Paper 4, figure 4: Ackermann (3 3)"))?,
            ),
            ("cells-machine.svg", draw(plot::machine(&report.allocating))?),
        ],
    })
}

fn curve(
    program: Program,
    caches: &[&'static str],
    rounds: usize,
    progress: &mut Progress,
    measure: impl Fn(&str) -> Result<Sample, String>,
) -> Result<Curve, String> {
    let mut curve = Curve::new(program, caches);
    for _ in 0..rounds {
        for (cache, samples) in &mut curve.points {
            progress.step(&format!("{}, cell cache {cache}", program.title));
            let sample = measure(cache);
            samples.push(
                sample.map_err(|why| format!("{}, cell cache {cache}: {why}", program.title))?,
            );
        }
    }
    Ok(curve)
}

/// The program, with a last form that prints statistics of its cells.
fn with_statistics(program: Program, out: &Path) -> Result<PathBuf, String> {
    let source = format!("bench/lisp/{}.scm", program.file);
    let text =
        std::fs::read_to_string(&source).map_err(|failure| format!("{source}: {failure}"))?;
    let file = out.join("build").join(format!("{}.scm", program.file.replace('/', "-")));
    std::fs::write(&file, text + "\n(system-call-statistics)\n")
        .map_err(|failure| failure.to_string())?;
    Ok(file)
}

fn deep_sample(kyocho: &Path, file: &Path, cache: &str) -> Result<Sample, String> {
    let mut command = process::limited(kyocho, RUN_SECONDS_MAX);
    command.args(["--engine", "deep", "--cell-cache", cache, "run"]).arg(file);
    let run = process::run(&mut command)?;
    Sample::from_statistics(&run.output).ok_or_else(|| format!("no statistics in {:?}", run.output))
}

/// One repetition's wall time, as the program printed it.
fn machine_sample(kyocho: &Path, program: Program, cache: &str) -> Result<Sample, String> {
    let mut command = process::limited(kyocho, RUN_SECONDS_MAX);
    command.args(["--cell-cache", cache, "run", &format!("bench/lisp/{}.scm", program.file), "1"]);
    let run = process::run(&mut command)?;
    Sample::from_result_line(&run.output).ok_or_else(|| "printed no result".into())
}
