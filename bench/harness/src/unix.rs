//! Paper 2, §1: unmodified programs under the UNIX server, beside the same programs run natively.
//!
//! One program, `bench/unix/lines.c`, repeats one operation and prints the times of one repetition.
//! A round runs each line natively and inside, one after the other, in alternating order; a ratio,
//! native over inside, is taken within the round. Figures without a native counterpart are
//! separate.

mod times;

use crate::lisp::build_kyocho;
use crate::progress::Progress;
use crate::statistics::Spread;
use crate::{Options, Part, build, process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use times::{Rounds, Times};

const RUN_SECONDS_MAX: u32 = 300;

/// A line: its name, repetitions in a run, description, and mark.
type Line = (&'static str, u32, &'static str, Option<f64>);

const LINES: [Line; 17] = [
    ("scall", 2_000_000, "getpid", Some(1.0)),
    ("mix", 500_000, "dup, close, getpid, getuid, umask", Some(0.30)),
    ("pipes", 500_000, "512 bytes into a pipe and out", Some(0.15)),
    ("context", 50_000, "there and back through two pipes", Some(0.10)),
    ("spawn", 3_000, "fork, exit, wait", Some(0.30)),
    ("execl", 500, "a program executes itself", Some(0.25)),
    ("copy256", 500_000, "copying a file, 256 bytes a time", Some(0.30)),
    ("copy1024", 500_000, "1024 bytes a time", Some(0.40)),
    ("copy4096", 300_000, "4096 bytes a time", Some(0.50)),
    ("dwrite", 500_000, "writing 1024 bytes", None),
    ("dread", 500_000, "reading 1024 bytes", None),
    ("opens", 20_000, "open, fstat, close, stat", None),
    ("sh", 30, "a shell script of ten programs", Some(0.35)),
    ("fcall", 300_000_000, "a function call", None),
    ("fcalla", 200_000_000, "a function call, and assignments", None),
    ("sieve", 20_000, "primes up to 8190", None),
    ("records", 50_000_000, "records, strings, arithmetic (as Dhrystone)", Some(0.99)),
];

/// Figures without a native side: name, unit, mark.
const FIGURES: [(&str, &str, f64); 3] = [
    ("from start to end of `true`", "ms", 12.0),
    ("memory of `sleep`, server and warden included", "MB", 6.0),
    ("processor time of a second of `sleep`", "ms", 1.0),
];

/// Number of starts of which a round takes the median.
const STARTS: usize = 20;

/// The programs.
struct Programs {
    lines: PathBuf,
    kyocho: PathBuf,
    script: PathBuf,
    /// Where files are written.
    folder: PathBuf,
}

/// Measures everything; the report's files are `unix.*`.
///
/// # Errors
/// A program cannot be built, or a run of it fails.
pub fn run(options: &Options) -> Result<Part, String> {
    let programs = Programs::build(options)?;
    let smaller = if options.quick { 10 } else { 1 };
    let mut progress = Progress::new(options.rounds() * (LINES.len() + FIGURES.len()));
    let mut times = vec![Rounds::new(); LINES.len()];
    let mut figures = vec![Vec::new(); FIGURES.len()];
    for round in 1..=options.rounds() {
        let empty = programs.empty_instance()?;
        for (index, &(name, count, ..)) in LINES.iter().enumerate() {
            progress.step(&format!("round {round}: {name}"));
            let mut order = [Side::Native, Side::Inside];
            order.rotate_left(round % 2);
            let measure = |side| programs.line(side, name, (count / smaller).max(1), empty);
            let (first, second) = (measure(order[0])?, measure(order[1])?);
            times[index].push(match order[0] {
                Side::Native => [first, second],
                Side::Inside => [second, first],
            });
        }
        for (index, (name, ..)) in FIGURES.iter().enumerate() {
            progress.step(&format!("round {round}: {name}"));
            figures[index].push(programs.figure(index)?);
        }
    }
    drop(progress);
    let rows = rows(&times, &figures);
    let lines = LINES.iter().zip(&times).map(|((name, _, what, _), times)| (*name, *what, times));
    let table_4 = times::table_4(lines);
    let host = &options.host;
    let markdown = markdown(host, options.rounds(), &rows) + &times::markdown(&table_4);
    let json = json!({ "host": host, "rounds": options.rounds(), "lines": rows,
        "table_4": table_4 });
    Ok(Part { name: "unix", json, markdown, plots: Vec::new() })
}

/// Where a program runs.
#[derive(Debug, Clone, Copy)]
enum Side {
    Native,
    Inside,
}

impl Programs {
    fn build(options: &Options) -> Result<Self, String> {
        let into = options.build_into().canonicalize().map_err(|failure| failure.to_string())?;
        let kyocho = build_kyocho(&into)?;
        let (lines, folder) = (into.join("lines"), into.join("unix-files"));
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-o"]).arg(&lines).arg("bench/unix/lines.c");
        build::finish(&mut compiler)?;
        std::fs::create_dir_all(&folder).map_err(|failure| failure.to_string())?;
        let script = Path::new("bench/unix/script.sh").canonicalize();
        Ok(Self { lines, kyocho, script: script.map_err(|failure| failure.to_string())?, folder })
    }

    fn inside(&self) -> Command {
        let mut command = process::limited(&self.kyocho, RUN_SECONDS_MAX);
        command.args(["unix", "--"]);
        command
    }

    /// Processor time of an instance whose program does next to nothing.
    fn empty_instance(&self) -> Result<Duration, String> {
        let mut command = self.inside();
        command.arg(&self.lines).args(["scall", "1"]);
        Ok(process::run(&mut command)?.cpu)
    }

    /// The times of one repetition. `empty` is the processor time of an instance that does nothing.
    fn line(&self, side: Side, name: &str, count: u32, empty: Duration) -> Result<Times, String> {
        let mut command = match side {
            Side::Native => process::limited(&self.lines, RUN_SECONDS_MAX),
            Side::Inside => {
                let mut command = self.inside();
                command.arg(&self.lines);
                command
            }
        };
        command.args([name, &count.to_string()]).current_dir(&self.folder);
        if name == "sh" {
            command.arg(&self.script);
        }
        let run = process::run(&mut command)?;
        let times = Times::from_output(&run.output);
        let times = times.ok_or_else(|| format!("{name} printed {:?}", run.output))?;
        let own_ns = (times.user_ns + times.system_ns) * f64::from(count);
        let others_ns = run.cpu.saturating_sub(empty).as_secs_f64() * 1e9 - own_ns;
        // Less than 0 is the variation of the time that an empty instance takes.
        let server_ns = others_ns.max(0.0) / f64::from(count);
        let server_ns = matches!(side, Side::Inside).then_some(server_ns);
        Ok(Times { server_ns, ..times })
    }

    /// Figure `index` of [`FIGURES`].
    fn figure(&self, index: usize) -> Result<f64, String> {
        match index {
            0 => {
                let start = || process::run(self.inside().arg("true"));
                let walls: Result<Vec<_>, _> =
                    (0..STARTS).map(|_| Ok::<_, String>(millis(start()?.wall))).collect();
                Ok(Spread::of(&walls?).map_or(f64::NAN, |walls| walls.median))
            }
            1 => self.memory_mb(),
            _ => {
                let cpu = |seconds: &str| process::run(self.inside().args(["sleep", seconds]));
                Ok((millis(cpu("3")?.cpu) - millis(cpu("0")?.cpu)) / 3.0)
            }
        }
    }

    /// Memory of a whole instance; shared memory is counted once.
    fn memory_mb(&self) -> Result<f64, String> {
        const STARTED_MAX: Duration = Duration::from_secs(60);
        let mut command = Command::new(&self.kyocho);
        command.args(["unix", "--", "sleep", "1000"]).stdin(Stdio::null()).stderr(Stdio::null());
        let mut instance = command.spawn().map_err(|failure| failure.to_string())?;
        let start = Instant::now();
        while !tree(instance.id()).iter().any(|process| sleeps(*process)) {
            if start.elapsed() > STARTED_MAX {
                return Err("`sleep` does not sleep".into());
            }
            std::thread::yield_now();
        }
        let kib: u64 = tree(instance.id()).iter().map(|process| proportional_kib(*process)).sum();
        // The warden ends the other processes.
        instance.kill().and_then(|()| instance.wait()).map_err(|failure| failure.to_string())?;
        Ok(kib as f64 / 1e3)
    }
}

/// A process and its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(&process) = all.get(next) {
        let children = format!("/proc/{process}/task/{process}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        next += 1;
    }
    all
}

/// Whether a process is in the system call of the program `sleep`.
fn sleeps(process: u32) -> bool {
    const CLOCK_NANOSLEEP: &str = "230 ";
    let call = std::fs::read_to_string(format!("/proc/{process}/syscall")).unwrap_or_default();
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name == "sleep\n" && call.starts_with(CLOCK_NANOSLEEP)
}

fn proportional_kib(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The lines of the report.
fn rows(times: &[Rounds], figures: &[Vec<f64>]) -> Vec<Value> {
    let row = |what: &str, values: &[f64], unit: &str, mark: Option<String>| {
        let spread = Spread::of(values)?;
        Some(json!({ "what": what, "median": spread.median, "least": spread.least,
            "most": spread.most, "unit": unit, "mark": mark }))
    };
    let lines = LINES.iter().zip(times).filter_map(|((name, _, what, mark), rounds)| {
        let of = |value: fn(&[Times; 2]) -> f64| rounds.iter().map(value).collect::<Vec<_>>();
        let native_ns = Spread::of(&of(|[native, _]| native.real_ns))?.median;
        let what = format!("{name}: {what}; natively {}", shown(native_ns));
        let ratios = of(|[native, inside]| native.real_ns / inside.real_ns);
        row(&what, &ratios, "of native", mark.map(|mark| format!(">= {mark}")))
    });
    let figures = FIGURES.iter().zip(figures).filter_map(|((what, unit, mark), values)| {
        row(what, values, unit, Some(format!("<= {mark}")))
    });
    lines.chain(figures).collect()
}

fn shown(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.1} ns"),
        _ if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

fn markdown(host: &str, rounds: usize, rows: &[Value]) -> String {
    let head = format!(
        "# UNIX server\n\n{host}; {rounds} rounds, median (least to greatest). Ratios are speed inside over speed natively.\n\n| | | unit | mark |\n|---|---|---|---|\n"
    );
    rows.iter().fold(head, |text, row| {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let word = |key: &str| row[key].as_str().unwrap_or_default();
        let spread =
            format!("{:.3} ({:.3} to {:.3})", number("median"), number("least"), number("most"));
        text + &format!("| {} | {spread} | {} | {} |\n", word("what"), word("unit"), word("mark"))
    })
}
