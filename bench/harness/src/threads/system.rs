//! The systems under comparison: how each is built, and how one workload is run on it.

use crate::build::{finish, first_complaint};
use crate::threads::workload::Workload;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A run that takes longer has failed; the slowest, kernel threads in the sieve, takes 20 s.
const RUN_SECONDS_MAX: u32 = 120;

/// One system that runs the workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// Its name on the command line and in the JSON report.
    pub name: &'static str,
    /// Its name for readers.
    pub title: &'static str,
    /// Estimated memory of one parked thread, to skip runs that would not fit.
    parked_bytes_max: u64,
}

/// The same program on two virtual processors.
pub const KYOCHO_ON_TWO: &str = "kyocho2";
/// The environment variable that sets this.
const PROCESSORS: &str = "KYOCHO_PROCESSORS";

/// All systems, in the order of the columns.
const ALL: [System; 7] = [
    System { name: "kyocho", title: "Kyocho", parked_bytes_max: 6000 },
    System { name: KYOCHO_ON_TWO, title: "Kyocho, two virtual processors", parked_bytes_max: 6000 },
    System { name: "go", title: "Go", parked_bytes_max: 3500 },
    System { name: "tokio", title: "tokio", parked_bytes_max: 1000 },
    System { name: "may", title: "may", parked_bytes_max: 11_000 },
    System { name: "boost", title: "Boost.Fiber", parked_bytes_max: 11_000 },
    System { name: "pthread", title: "kernel threads", parked_bytes_max: 28_000 },
];

/// A system with its program.
#[derive(Debug, Clone)]
pub struct Built {
    /// The system.
    pub system: System,
    /// The version that the program prints.
    pub version: String,
    /// Its program.
    pub program: PathBuf,
}

/// Result of one run.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The result line, its check passed.
    Line(Value),
    /// The system cannot do this, by design; why.
    Unsupported(String),
    /// It failed; how it ended.
    Failed(String),
}

/// The systems named in `names`, or all of them; Go is always among them, as the baseline.
///
/// # Errors
/// A name is not that of a system.
pub fn chosen(names: &[String]) -> Result<Vec<System>, String> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|system| system.name != **name))
    {
        let known: Vec<_> = ALL.iter().map(|system| system.name).collect();
        return Err(format!("no system `{unknown}`; there are {}", known.join(", ")));
    }
    let wanted = |system: &System| {
        names.is_empty() || system.name == "go" || names.iter().any(|name| name == system.name)
    };
    Ok(ALL.into_iter().filter(wanted).collect())
}

/// Builds every system. Returns those that were built, and the reason for each of the others.
pub fn build_all(systems: &[System], into: &Path) -> (Vec<Built>, Vec<String>) {
    let (mut built, mut skipped) = (Vec::new(), Vec::new());
    for &system in systems {
        eprintln!("bench: building {}", system.title);
        match system.build(into) {
            Ok(program) => {
                let version = system.version(&program).unwrap_or_else(|| system.title.into());
                built.push(Built { system, version, program });
            }
            Err(why) => {
                eprintln!("bench: {} is skipped: {why}", system.title);
                skipped.push(format!("{} is skipped: {why}", system.title));
            }
        }
    }
    (built, skipped)
}

impl System {
    /// Number of virtual processors of Kyocho's program.
    fn processors(self) -> &'static str {
        if self.name == KYOCHO_ON_TWO { "2" } else { "1" }
    }

    fn version(self, program: &Path) -> Option<String> {
        let mut ask = Command::new(program);
        let output = ask.env(PROCESSORS, self.processors()).arg("version").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
    }

    fn build(self, into: &Path) -> Result<PathBuf, String> {
        // Whose program it is.
        let name = if self.name == KYOCHO_ON_TWO { "kyocho" } else { self.name };
        std::fs::create_dir_all(into).map_err(|failure| failure.to_string())?;
        let into = into.canonicalize().map_err(|failure| failure.to_string())?;
        let program = into.join(format!("{name}-peer"));
        let source = |file: &str| format!("bench/peers/{name}/{file}");
        match name {
            "go" => finish(
                Command::new("go")
                    .args(["build", "-o"])
                    .arg(&program)
                    .arg(".")
                    .current_dir(source("")),
            ),
            "kyocho" | "tokio" | "may" => {
                finish(
                    Command::new("cargo")
                        .args(["build", "--quiet", "--release", "--manifest-path"])
                        .arg(source("Cargo.toml"))
                        .arg("--target-dir")
                        .arg(&into),
                )?;
                return Ok(into.join(format!("release/{name}-peer")));
            }
            "boost" => finish(
                Command::new("c++")
                    .args(["-std=c++17", "-O2", "-DNDEBUG", "-pthread", "-o"])
                    .arg(&program)
                    .arg(source("main.cpp"))
                    .args(["-lboost_fiber", "-lboost_context"]),
            ),
            _ => {
                let child = into.join(format!("{name}-peer-child"));
                finish(
                    Command::new("cc")
                        .args(["-O2", "-static", "-nostdlib", "-fno-stack-protector", "-o"])
                        .arg(&child)
                        .arg(source("child.c")),
                )?;
                finish(
                    Command::new("cc")
                        .args(["-std=gnu17", "-O2", "-pthread", "-o"])
                        .arg(&program)
                        .arg(source("main.c")),
                )
            }
        }?;
        Ok(program)
    }
}

impl Built {
    /// Runs one workload to its end.
    pub fn run(&self, work: &Workload) -> Outcome {
        if work.bench == "parked_stackless" && !self.system.name.starts_with("kyocho") {
            // Without output: the parked threads of others are measured as they are.
            return Outcome::Unsupported(String::new());
        }
        if let Some(why) = self.lacks_memory_for(work) {
            return Outcome::Failed(why);
        }
        let output = Command::new("timeout")
            .env(PROCESSORS, self.system.processors())
            .arg(RUN_SECONDS_MAX.to_string())
            .arg(&self.program)
            .args(work.command().split(' '))
            .output();
        match output {
            Ok(output) => outcome(&output),
            Err(failure) => Outcome::Failed(format!("{}: {failure}", self.program.display())),
        }
    }

    fn lacks_memory_for(&self, work: &Workload) -> Option<String> {
        let count = work.bench.starts_with("parked").then(|| work.arguments.first()).flatten()?;
        let needed = count * self.system.parked_bytes_max;
        let status = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let available = line.split_whitespace().next()?.parse::<u64>().ok()? * 1024;
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        (available < needed).then(|| {
            format!("may need {:.0} GB, {:.0} GB are free", gigabytes(needed), gigabytes(available))
        })
    }
}

/// Parses the result line. A program that ends with a status other than 0 has failed its check.
fn outcome(output: &Output) -> Outcome {
    if output.status.code() == Some(124) {
        return Outcome::Failed(format!("no result within {RUN_SECONDS_MAX} s"));
    }
    if !output.status.success() {
        return Outcome::Failed(first_complaint("fails", output));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).next_back();
    match line {
        None => Outcome::Failed("printed no result".into()),
        Some(line) => match line.get("unsupported").and_then(Value::as_str) {
            Some(why) => Outcome::Unsupported(why.to_owned()),
            None if line.get("value").is_some_and(Value::is_number) => Outcome::Line(line),
            None => Outcome::Failed("printed no value".into()),
        },
    }
}
