//! Paper 2: page tables for 64-bit spaces, and TLBs on the touches of real programs.
//!
//! One program, `bench/pagetable`, times look-ups in all tables side by side and prints ratios of
//! one run; a round runs it once for each shape of space. Real programs run once, under valgrind's
//! lackey: what they touch does not depend on the clock.

mod report;

use crate::progress::Progress;
use crate::{Options, Part, build, process};
use report::Report;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN_SECONDS_MAX: u32 = 300;
pub const SHAPES: [&str; 3] = ["dense", "islands", "sparse"];
/// The traced programs: a name, and a command line for the shell.
const PROGRAMS: [(&str, &str); 3] = [
    ("recorded", ""),
    ("sort", "sort --parallel=1 LICENSE-APACHE"),
    (
        "cc1",
        "sh -c 'printf \"#include <stdio.h>\\nint main(void){return 0;}\" | gcc -O2 -S -x c -o /dev/null -'",
    ),
];
/// The recording that the tests use too: `ls -l /`.
const RECORDING: &str = "crates/pagetable/tests/traces/ls.trace";

/// Measures everything; the report's files are `pagetable.*`.
///
/// # Errors
/// The program cannot be built, or a check of it fails.
pub fn run(options: &Options) -> Result<Part, String> {
    let program = build_program(&options.build_into())?;
    let traced = if options.quick { &PROGRAMS[..1] } else { &PROGRAMS[..] };
    let mut progress = Progress::new(options.rounds() * SHAPES.len() + traced.len());
    let mut lines = Vec::new();
    for round in 1..=options.rounds() {
        for shape in SHAPES {
            progress.step(&format!("round {round}: {shape} space"));
            let mut command = process::limited(&program, RUN_SECONDS_MAX);
            lines.extend(results(command.args(["maps", shape]))?);
        }
    }
    let valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    let mut notes = Vec::new();
    for (name, command) in traced {
        progress.step(&format!("touches of {name}"));
        if command.is_empty() {
            let mut replay = process::limited(&program, RUN_SECONDS_MAX);
            lines.extend(results(replay.args(["replay", name, RECORDING]))?);
        } else if !valgrind {
            notes.push(format!(
                "{name} was not traced: valgrind is missing; apt-get install valgrind"
            ));
        } else {
            match results(&mut trace(&program, name, command)) {
                Ok(found) => lines.extend(found),
                Err(why) => notes.push(format!("{name} was not traced: {why}")),
            }
        }
    }
    drop(progress);
    let report = Report { host: options.host.clone(), rounds: options.rounds(), lines, notes };
    let (json, markdown) = (report.to_json(), report.to_markdown());
    Ok(Part { name: "pagetable", json, markdown, plots: Vec::new() })
}

fn build_program(into: &Path) -> Result<PathBuf, String> {
    eprintln!("bench: building pagetable");
    let into = into.canonicalize().map_err(|failure| failure.to_string())?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--manifest-path", "bench/pagetable/Cargo.toml"]);
    build::finish(cargo.arg("--target-dir").arg(&into))?;
    Ok(into.join("release/pagetable"))
}

/// A program under lackey, whose lines are piped to this bench's program; the program's own output
/// is discarded.
fn trace(program: &Path, name: &str, command: &str) -> Command {
    let script = format!(
        "valgrind --tool=lackey --trace-mem=yes --trace-children=yes --log-fd=9 {command} \
         9>&1 >/dev/null 2>/dev/null | \"$0\" tlb \"$1\""
    );
    let mut shell = process::limited(Path::new("sh"), RUN_SECONDS_MAX);
    shell.arg("-c").arg(script).arg(program).arg(name);
    shell
}

fn results(command: &mut Command) -> Result<Vec<Value>, String> {
    let run = process::run(command)?;
    let values: Vec<Value> =
        run.output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if values.is_empty() { Err("printed no result".into()) } else { Ok(values) }
}
