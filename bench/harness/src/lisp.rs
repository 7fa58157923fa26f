//! Lisp: the programs of `bench/lisp` on Kyocho beside Guile, which compiles them first.
//!
//! Processor time of a run with all its repetitions, less that of one with none, over their number:
//! this excludes the cost of starting and compiling. Threads are measured in wall time, by the
//! programs.

mod parked;
mod report;

use crate::progress::Progress;
use crate::statistics::Spread;
use crate::{Options, Part, build, process};
use report::{Entry, Report};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limit of a run. All repetitions of a program together take seconds.
const RUN_SECONDS_MAX: u32 = 120;

/// The programs, in the order of the rows.
const PROGRAMS: [&str; 15] = [
    "ack", "ack9", "fib", "tak", "qs72", "qs100k", "nqueens", "gcbench", "string", "hash", "ctak",
    "mandel", "cpstak", "records", "vectors",
];

/// A program about threads.
#[derive(Debug, Clone, Copy)]
struct ThreadProgram {
    name: &'static str,
    /// Repetitions on Guile, whose threads are kernel threads, and on Kyocho; `None` if it does not
    /// run there.
    counts: [Option<u64>; 2],
    /// In microseconds.
    mark: Option<f64>,
}

const THREADS: [ThreadProgram; 3] = [
    ThreadProgram { name: "spawn_join", counts: [Some(2000), Some(100_000)], mark: Some(2.0) },
    ThreadProgram { name: "round_trip_channel", counts: [None, Some(200_000)], mark: Some(1.0) },
    ThreadProgram { name: "round_trip", counts: [Some(5000), Some(200_000)], mark: None },
];

/// A Lisp system.
#[derive(Debug, Clone)]
struct Lisp {
    title: String,
    program: PathBuf,
    before_file: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Lisp {
    fn guile(out: &Path) -> Result<Self, String> {
        let version = process::run(Command::new("guile").arg("--version"))?;
        let title =
            version.output.lines().next().unwrap_or("Guile").replace("guile (GNU Guile)", "Guile");
        Ok(Self {
            title,
            program: "guile".into(),
            before_file: vec!["--r7rs".into()],
            // Directory of compiled files, instead of the user's home.
            environment: vec![("XDG_CACHE_HOME", out.join("build/guile"))],
        })
    }

    fn kyocho(out: &Path) -> Result<Self, String> {
        let program = build_kyocho(&out.join("build"))?;
        Ok(Self {
            title: "Kyocho".into(),
            program,
            before_file: vec!["run".into()],
            environment: Vec::new(),
        })
    }

    fn command(&self, file: &Path, count: Option<u64>) -> Command {
        let mut command = process::limited(&self.program, RUN_SECONDS_MAX);
        command.args(&self.before_file).arg(file).args(count.map(|count| count.to_string()));
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }

    /// Runs a program with no repetition, so that Guile compiles it if it is new.
    fn warm_up(&self, file: &Path) -> Result<(), String> {
        process::run(&mut self.command(file, Some(0))).map(drop)
    }

    /// The processor time and the wall time of one repetition, in microseconds.
    fn per_run_us(&self, file: &Path, count: Option<u64>) -> Result<(f64, f64), String> {
        let start = process::run(&mut self.command(file, Some(0)))?;
        let whole = process::run(&mut self.command(file, count))?;
        let line = result_line(&whole.output).ok_or("printed no result")?;
        let field = |name: &str| line.get(name).and_then(Value::as_f64);
        let (Some(wall_us), Some(runs)) = (field("value"), field("runs")) else {
            return Err("printed no value".into());
        };
        let cpu = whole.cpu.saturating_sub(start.cpu);
        Ok((cpu.as_secs_f64() * 1e6 / runs, wall_us))
    }

    fn start_ms(&self, file: &Path) -> Result<f64, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.before_file).arg(file);
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        process::run(&mut command).map(|run| millis(run.wall))
    }
}

/// Builds the `kyocho` command.
///
/// # Errors
/// The error of cargo.
pub fn build_kyocho(build_into: &Path) -> Result<PathBuf, String> {
    eprintln!("bench: building kyocho");
    let target = build_into.join("kyocho");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "-p", "kyocho-cli", "--target-dir"]).arg(&target);
    build::finish(&mut cargo)?;
    Ok(target.join("release/kyocho"))
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn result_line(output: &str) -> Option<Value> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).next_back()
}

/// Runs the programs; the report's files are `lisp.*`.
///
/// # Errors
/// A system is missing or cannot be built, or a name is not that of a program.
pub fn run(options: &Options) -> Result<Part, String> {
    let unknown = options.only.iter().find(|name| !PROGRAMS.contains(&name.as_str()));
    if let Some(unknown) = unknown {
        return Err(format!("no program `{unknown}`; there are {}", PROGRAMS.join(", ")));
    }
    let out = options.out.canonicalize().map_err(|failure| failure.to_string())?;
    let systems = [Lisp::guile(&out)?, Lisp::kyocho(&out)?];
    let chosen: Vec<_> = PROGRAMS
        .into_iter()
        .filter(|name| options.only.is_empty() || options.only.iter().any(|only| only == name))
        .collect();
    let everything = options.only.is_empty();
    let rounds = options.rounds();
    let starts = if everything { rounds * 5 } else { 0 };
    let threads = if everything { &THREADS[..] } else { &[] };
    let asked: usize = threads.iter().map(|program| program.counts.iter().flatten().count()).sum();
    let mut progress = Progress::new(rounds * (chosen.len() * 2 + asked) + starts * 2 + 2);

    let programs = programs(&systems, &chosen, rounds, &mut progress);
    let start = starts_ms(&systems, starts, &mut progress);
    let threads = thread_programs(&systems, threads, rounds, &mut progress);
    let parked = if everything {
        [(0, 1000), (1, if options.quick { 10_000 } else { 100_000 })]
            .map(|(system, count)| {
                progress.step(&format!("parked, {}", systems[system].title));
                parked::bytes_each(&systems[system], count).map(|bytes| (count, bytes))
            })
            .to_vec()
    } else {
        Vec::new()
    };
    drop(progress);
    let titles = systems.map(|system| system.title);
    let host = options.host.clone();
    let report = Report { host, titles, rounds, programs, start, threads, parked };
    Ok(Part {
        name: "lisp",
        json: report.to_json(),
        markdown: report.to_markdown(),
        plots: Vec::new(),
    })
}

/// Each program on both systems, round after round.
fn programs(
    systems: &[Lisp; 2],
    names: &[&str],
    rounds: usize,
    progress: &mut Progress,
) -> Vec<Entry> {
    let file = |name: &str| PathBuf::from(format!("bench/lisp/{name}.scm"));
    let mut entries: Vec<_> =
        names.iter().map(|name| Entry::warm(name, None, systems, &file(name))).collect();
    for round in 1..=rounds {
        for entry in &mut entries {
            let file = file(&entry.name);
            for (system, lisp) in systems.iter().enumerate() {
                progress.step(&format!("round {round}: {}, {}", entry.name, lisp.title));
                entry.add(system, || Ok(lisp.per_run_us(&file, None)?.0));
            }
        }
    }
    entries
}

fn starts_ms(systems: &[Lisp; 2], times: usize, progress: &mut Progress) -> Entry {
    let file = Path::new("bench/lisp/start.scm");
    let mut entry = Entry::warm("start", Some(20.0), systems, file);
    for _ in 0..times {
        for (system, lisp) in systems.iter().enumerate() {
            progress.step(&format!("start, {}", lisp.title));
            entry.add(system, || lisp.start_ms(file));
        }
    }
    entry
}

fn thread_programs(
    systems: &[Lisp; 2],
    threads: &[ThreadProgram],
    rounds: usize,
    progress: &mut Progress,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for program in threads {
        let file = PathBuf::from(format!("bench/lisp/threads/{}.scm", program.name));
        let mut entry = Entry::new(program.name, program.mark);
        let asked = || {
            let counts = systems.iter().zip(program.counts).enumerate();
            counts.filter_map(|(system, (lisp, count))| Some((system, lisp, count?)))
        };
        for (system, lisp, count) in (0..rounds).flat_map(|_| asked()) {
            progress.step(&format!("{}, {}", program.name, lisp.title));
            entry.add(system, || Ok(lisp.per_run_us(&file, Some(count))?.1));
        }
        entries.push(entry);
    }
    entries
}

/// The geometric mean.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (!values.is_empty()).then(|| (sum / values.len() as f64).exp())
}

/// The ratio of the second system to the first, round by round.
fn ratios(entry: &Entry) -> Option<Spread> {
    let [Ok(first), Ok(second)] = &entry.values else { return None };
    Spread::of(&first.iter().zip(second).map(|(first, second)| second / first).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::geometric_mean;

    #[test]
    fn the_geometric_mean_of_a_half_and_two_is_one() {
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
