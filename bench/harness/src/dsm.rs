//! Paper 3: the cost of shared memory across nodes: locks by both schemes, pages, barriers, and the
//! two programs of figures 4 and 5.
//!
//! `bench/dsm` times locks, pages and barriers, each with its baseline in the same run. The
//! programs are run by `kyocho dsm run`. They also compute on one node, compare the results bit for
//! bit, and print the speed-up. A round runs everything once. With `--namespaces` the programs run
//! again, on hosts with separate network stacks (`bench/namespaces`), if that is permitted.

mod mpi;
mod pairs;
mod plot;
mod scaling;

use crate::lisp::build_kyocho;
use crate::progress::Progress;
use crate::statistics::Spread;
use crate::{Options, Part, build, process};
use pairs::Pairs;
use scaling::Scaling;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN_SECONDS_MAX: u32 = 300;

/// A line of the report: the figure, its description, its unit, its mark.
type Line = (&'static str, &'static str, &'static str, &'static str);

const LINES: [Line; 56] = [
    ("figure-1-worker", "figure 1 (1), a worker manages: old scheme over new", "ratio", ">= 1.6"),
    ("figure-1-worker-us", "an increment by the new", "us", ""),
    ("figure-1-worker-messages", "its messages", "", "<= 4"),
    ("figure-1-worker-bytes", "their bytes", "", ""),
    ("figure-1-other", "figure 1 (2), another node manages: old over new", "ratio", ">= 1.6"),
    ("figure-1-other-us", "an increment by the new", "us", ""),
    ("figure-1-other-messages", "its messages", "", "<= 4"),
    (
        "figure-2-one",
        "figure 2, 8 locks by 8 nodes, one manages all: old over new",
        "ratio",
        ">= 1.6",
    ),
    ("figure-2-one-us", "an increment by the new", "us", "<= 100"),
    ("figure-2-spread", "figure 2, managers by lock: old over new", "ratio", ">= 1.6"),
    ("figure-2-spread-us", "an increment by the new", "us", "<= 100"),
    ("table-3-one-messages", "table 3, one page manager: messages an increment", "", ""),
    ("table-3-one-bytes", "their bytes", "", ""),
    ("table-3-spread-messages", "table 3, page managers where they are used: messages", "", ""),
    ("table-3-spread-bytes", "their bytes", "", ""),
    ("readers", "4 readers, exclusive lock over non-exclusive", "ratio", ">= 3"),
    ("round-trip-us", "round trip of 4 bytes on the transport alone", "us", ""),
    ("echo-us", "of 4 KiB", "us", ""),
    (
        "lock-increment",
        "a turn of lock and increment by two nodes over the round trip",
        "ratio",
        "<= 3",
    ),
    ("page-fetch", "a page fetched over the 4 KiB echo", "ratio", "<= 1.5"),
    ("barrier", "a barrier of two nodes over the round trip", "ratio", ""),
    ("water", "figure 4, 1728 molecules on 2 nodes: sequential over this", "ratio", ""),
    ("water-threads", "2 kernel threads over this", "ratio", ">= 0.8"),
    (
        "sor-ordinary",
        "figure 5, SOR 1024 x 1536 on 2 nodes, ordinary barrier: sequential over this",
        "ratio",
        "",
    ),
    ("sor-ordinary-share", "of its time spent noticing writes", "%", ""),
    ("sor-single", "the same with the single-read-write barrier", "ratio", ">= 1.8"),
    ("sor-single-share", "of its time spent noticing writes", "%", "<= 3"),
    (
        "sor-ordinary-traps",
        "ordinary barrier, writes noticed by SIGSEGV as in the paper",
        "ratio",
        "",
    ),
    ("sor-ordinary-traps-share", "of its time spent noticing writes (the paper: 49)", "%", ""),
    ("sor-single-traps", "the same with the single-read-write barrier", "ratio", ""),
    ("sor-single-traps-share", "of its time spent noticing writes (the paper: 9)", "%", "<= 9"),
    ("mpi-barrier-us", "MPI's barrier of two processes, over TCP", "us", ""),
    ("mpi-barrier", "a barrier of two nodes over it", "ratio", "<= 1.5"),
    ("mpi-lock-us", "lock and increment in MPI's window, over TCP", "us", ""),
    ("mpi-lock", "a turn of two nodes over it", "ratio", ""),
    ("mpi-sor", "SOR in MPI, over TCP: sequential over this", "ratio", ""),
    (
        "mpi-sor-nodes",
        "SOR in MPI over that on 2 nodes, single-read-write barrier",
        "ratio",
        ">= 0.9",
    ),
    ("mpi-memory-barrier-us", "MPI's barrier, over shared memory", "us", ""),
    ("mpi-memory-barrier", "a barrier of two nodes by MPI over it", "ratio", "<= 1.5"),
    ("mpi-memory-lock", "a turn of two nodes by MPI over MPI's window", "ratio", ""),
    ("water-mpi", "figure 4, nodes connected by MPI over shared memory", "ratio", ""),
    ("water-mpi-threads", "2 kernel threads over this", "ratio", ">= 0.8"),
    (
        "sor-single-mpi",
        "figure 5, single-read-write barrier, nodes connected by MPI",
        "ratio",
        ">= 1.8",
    ),
    ("sor-single-mpi-share", "of its time spent noticing writes", "%", "<= 3"),
    (
        "mpi-memory-barrier-shm",
        "a barrier of two nodes by shared memory over it",
        "ratio",
        "<= 1.5",
    ),
    ("mpi-memory-lock-shm", "a turn of two nodes by shared memory over MPI's window", "ratio", ""),
    (
        "mpi-memory-sor-shm",
        "SOR in MPI, over shared memory, over that on 2 nodes by shared memory",
        "ratio",
        ">= 0.9",
    ),
    ("water-shm", "figure 4, nodes connected by shared memory", "ratio", ""),
    ("water-shm-threads", "2 kernel threads over this", "ratio", ">= 0.8"),
    ("sor-ordinary-shm", "figure 5, ordinary barrier, by shared memory", "ratio", ""),
    ("sor-single-shm", "the same with the single-read-write barrier", "ratio", ">= 1.8"),
    ("sor-single-shm-barrier-us", "a barrier of it, median", "us", ""),
    ("sor-single-shm-share", "of its time spent noticing writes", "%", "<= 3"),
    ("water-hosts", "figure 4 on two hosts: sequential over this", "ratio", ""),
    ("sor-ordinary-hosts", "figure 5 on two hosts, ordinary barrier", "ratio", ""),
    ("sor-single-hosts", "figure 5 on two hosts, single-read-write barrier", "ratio", ""),
];

/// Nodes connected by TCP, and by memory that they share.
const TCP: [&str; 2] = ["--transport", "tcp"];
const SHM: [&str; 2] = ["--transport", "shm"];

/// A program of the paper's figures: name of its figures, options of `kyocho dsm run`, the program
/// and its arguments.
type Run = (&'static str, &'static [&'static str], &'static [&'static str]);

const RUNS: [Run; 8] = [
    ("water", &TCP, &["water", "1728", "2"]),
    ("sor-ordinary", &TCP, &["sor", "1024", "1536", "100", "ordinary"]),
    ("sor-single", &TCP, &["sor", "1024", "1536", "100", "single"]),
    (
        "sor-ordinary-traps",
        &["--transport", "tcp", "--detection", "protect"],
        &["sor", "1024", "1536", "100", "ordinary"],
    ),
    (
        "sor-single-traps",
        &["--transport", "tcp", "--detection", "protect"],
        &["sor", "1024", "1536", "100", "single"],
    ),
    ("water-shm", &SHM, &["water", "1728", "2"]),
    ("sor-ordinary-shm", &SHM, &["sor", "1024", "1536", "100", "ordinary"]),
    ("sor-single-shm", &SHM, &["sor", "1024", "1536", "100", "single"]),
];

/// The same connected by MPI.
const RUNS_BY_MPI: [(&str, &[&str]); 2] = [
    ("water-mpi", &["water", "1728", "2"]),
    ("sor-single-mpi", &["sor", "1024", "1536", "100", "single"]),
];

/// The same on hosts.
const RUNS_ON_HOSTS: [(&str, &[&str]); 3] = [
    ("water-hosts", &["water", "1728", "2"]),
    ("sor-ordinary-hosts", &["sor", "1024", "1536", "100", "ordinary"]),
    ("sor-single-hosts", &["sor", "1024", "1536", "100", "single"]),
];

/// The programs under measurement.
struct Programs {
    locks_and_pages: PathBuf,
    /// The peer, or why it could not be built.
    mpi: Result<mpi::Mpi, String>,
    kyocho: PathBuf,
    examples: PathBuf,
}

/// Measures everything; the report's files are `dsm.*`.
///
/// # Errors
/// A program cannot be built, or a run of it fails.
pub fn run(options: &Options) -> Result<Part, String> {
    let programs = Programs::build(&options.build_into())?;
    let turns = if options.quick { "200" } else { "2000" };
    let on_hosts = if options.namespaces { &RUNS_ON_HOSTS[..] } else { &[] };
    // With `--quick` one round of these shows that they run.
    let scaling_rounds = if options.quick { 1 } else { options.rounds() };
    let curves = scaling_rounds * scaling::CURVES.len() * scaling::NODES.len();
    let steps = 1 + RUNS.len() + on_hosts.len() + usize::from(programs.mpi.is_ok());
    let mut notes: Vec<_> = programs.mpi.as_ref().err().cloned().into_iter().collect();
    let mut progress = Progress::new(options.rounds() * steps + curves);
    let (mut pairs, mut scaling) = (Pairs::default(), Scaling::default());
    let mut figures: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 1..=options.rounds() {
        progress.step(&format!("round {round}: locks and pages"));
        let output = programs.locks_and_pages(turns)?;
        pairs.add(&output)?;
        let mut all = figures_of(&output);
        for (name, how, words) in RUNS {
            progress.step(&format!("round {round}: {name}"));
            all.extend(programs.nodes(name, how, words)?);
        }
        for (name, words) in on_hosts {
            progress.step(&format!("round {round}: {name}"));
            match programs.hosts(name, words)? {
                Ok(figure) => all.push(figure),
                Err(why) => notes.push(format!("{name} not measured: {why}")),
            }
        }
        if let Ok(mpi) = &programs.mpi {
            progress.step(&format!("round {round}: MPI"));
            all.extend(programs.beside(mpi, turns, &all)?);
        }
        all.into_iter().for_each(|(name, value)| figures.entry(name).or_default().push(value));
        if round <= scaling_rounds {
            programs.scale(&mut scaling, options.quick, |name| {
                progress.step(&format!("round {round}: {name}"));
            })?;
        }
    }
    drop(progress);
    let lines: Vec<Value> = LINES.iter().filter_map(|line| report(line, &figures)).collect();
    let host = &options.host;
    notes.sort();
    notes.dedup();
    notes.iter().for_each(|note| eprintln!("bench: dsm: {note}"));
    let markdown = markdown(host, options.rounds(), &lines)
        + &notes.iter().map(|note| format!("\n{note}\n")).collect::<String>()
        + &pairs.markdown()
        + &scaling.markdown(4)
        + &scaling.markdown(5);
    let json = json!({ "host": host, "rounds": options.rounds(), "notes": notes, "lines": lines,
        "figure_3": pairs.figure_3(), "table_3": pairs.table_3(),
        "figure_4": scaling.figure(4), "figure_5": scaling.figure(5) });
    let medians = figures
        .iter()
        .filter_map(|(name, values)| Some((name.as_str(), Spread::of(values)?.median)));
    let plots = plot::all(&medians.collect()).map_err(|failure| failure.to_string())?;
    Ok(Part { name: "dsm", json, markdown, plots })
}

impl Programs {
    fn build(into: &Path) -> Result<Self, String> {
        let into = into.canonicalize().map_err(|failure| failure.to_string())?;
        let kyocho = build_kyocho(&into)?;
        eprintln!("bench: building dsm");
        let mpi = mpi::Mpi::build(&into);
        let feature = mpi.is_ok().then_some("--features=mpi");
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--release", "-p", "kyocho", "--target-dir"]);
        cargo.arg(into.join("kyocho")).args(feature);
        build::finish(cargo.args(["--example", "sor", "--example", "water"]))?;
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet", "--release", "--manifest-path", "bench/dsm/Cargo.toml"]);
        build::finish(cargo.args(feature).arg("--target-dir").arg(&into))?;
        let examples = into.join("kyocho/release/examples");
        Ok(Self { locks_and_pages: into.join("release/dsm"), mpi, kyocho, examples })
    }

    /// The output of one run of `bench/dsm`.
    fn locks_and_pages(&self, turns: &str) -> Result<String, String> {
        let mut command = process::limited(&self.locks_and_pages, RUN_SECONDS_MAX);
        Ok(process::run(command.args(["all", turns]))?.output)
    }

    /// One round of figures 4 and 5, on every number of nodes. `begin` is told of each run.
    fn scale(
        &self,
        scaling: &mut Scaling,
        is_quick: bool,
        mut begin: impl FnMut(&str),
    ) -> Result<(), String> {
        for curve in &scaling::CURVES {
            for nodes in scaling::NODES {
                begin(&format!("{}, {nodes} nodes", curve.name));
                scaling.run(curve, nodes, is_quick, &self.kyocho, &self.examples)?;
            }
        }
        Ok(())
    }

    /// The figures of a program on two nodes: speed-up over one node, and the share of time spent
    /// detecting writes if it is printed.
    fn nodes(
        &self,
        name: &str,
        how: &[&str],
        words: &[&str],
    ) -> Result<Vec<(String, f64)>, String> {
        let mut command = process::limited(&self.kyocho, RUN_SECONDS_MAX);
        command.args(["dsm", "run", "-n", "2"]).args(how).arg("--");
        let run = process::run(command.arg(self.examples.join(words[0])).args(&words[1..]))?;
        told(name, &run.output)
    }

    /// The time of MPI for the same work, and the ratio of the nodes' time to it. `all` has the
    /// earlier figures of this round.
    fn beside(
        &self,
        mpi: &mpi::Mpi,
        turns: &str,
        all: &[(String, f64)],
    ) -> Result<Vec<(String, f64)>, String> {
        let node = [self.locks_and_pages.as_os_str(), "node".as_ref(), turns.as_ref()];
        let connected = |how: &[&str]| {
            let mut command = process::limited(&self.kyocho, RUN_SECONDS_MAX);
            let command = command.args(["dsm", "run", "-n", "2"]).args(how).arg("--").args(node);
            process::run(command).map(|run| figures_of(&run.output))
        };
        let (by_tcp, by_memory) = (connected(&TCP)?, connected(&SHM)?);
        let tcp = mpi.alone(mpi::Network::Tcp, turns)?;
        let memory = mpi.alone(mpi::Network::Memory, turns)?;
        let by_mpi = figures_of(&mpi.nodes(&self.kyocho, &node)?);
        let sor =
            |nodes: &str, mpi: &[_]| Some(value(mpi, "mpi-sor-round-us")? / value(all, nodes)?);
        let over = |nodes: &[_], mpi: &[_], what: &str| {
            Some(value(nodes, &format!("node-{what}-us"))? / value(mpi, &format!("mpi-{what}-us"))?)
        };
        let ratios = [
            ("mpi-barrier", over(&by_tcp, &tcp, "barrier")),
            ("mpi-lock", over(&by_tcp, &tcp, "lock")),
            ("mpi-sor-nodes", sor("sor-single-round-us", &tcp)),
            ("mpi-memory-barrier-us", value(&memory, "mpi-barrier-us")),
            ("mpi-memory-barrier", over(&by_mpi, &memory, "barrier")),
            ("mpi-memory-lock", over(&by_mpi, &memory, "lock")),
            ("mpi-memory-barrier-shm", over(&by_memory, &memory, "barrier")),
            ("mpi-memory-lock-shm", over(&by_memory, &memory, "lock")),
            ("mpi-memory-sor-shm", sor("sor-single-shm-round-us", &memory)),
        ];
        let ratios = ratios.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let mut figures: Vec<_> = tcp.iter().cloned().chain(ratios).collect();
        for (name, words) in RUNS_BY_MPI {
            let program = self.examples.join(words[0]);
            let words = words[1..].iter().map(AsRef::as_ref);
            let line: Vec<_> = [program.as_os_str()].into_iter().chain(words).collect();
            figures.extend(told(name, &mpi.nodes(&self.kyocho, &line)?)?);
        }
        Ok(figures)
    }

    /// The same on two hosts, or the reason if this machine does not permit them.
    fn hosts(&self, name: &str, words: &[&str]) -> Result<Result<(String, f64), String>, String> {
        let mut command = process::limited(Path::new("bench/namespaces"), RUN_SECONDS_MAX);
        command.arg("2").arg(self.examples.join(words[0])).args(&words[1..]);
        match process::run(&mut command) {
            Ok(run) => Ok(Ok((name.to_owned(), faster(name, &run.output)?))),
            Err(why) if why.contains("skipped namespaces") => Ok(Err(why)),
            Err(why) => Err(why),
        }
    }
}

/// The figures that a program prints: its speed-up over one node, and others.
fn told(name: &str, output: &str) -> Result<Vec<(String, f64)>, String> {
    let told = [
        ("share", " % noticing writes"),
        ("threads", " times as fast as 2 kernel threads"),
        ("round-us", " us a round"),
        ("barrier-us", " us a barrier"),
    ];
    let told = told.into_iter().filter_map(|(part, words)| {
        Some((format!("{name}-{part}"), number_before(output, words)?))
    });
    Ok([(name.to_owned(), faster(name, output)?)].into_iter().chain(told).collect())
}

/// The figures that a program printed, a line of JSON each.
fn figures_of(output: &str) -> Vec<(String, f64)> {
    let lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let figure = |line: Value| Some((line["figure"].as_str()?.to_owned(), line["value"].as_f64()?));
    lines.filter_map(figure).collect()
}

fn value(figures: &[(String, f64)], name: &str) -> Option<f64> {
    figures.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

/// The speed-up over one node that a program prints.
fn faster(name: &str, output: &str) -> Result<f64, String> {
    let faster = number_before(output, " times as fast as one");
    faster.ok_or_else(|| format!("{name} printed no speed-up"))
}

/// The number in `text` directly before `words`.
fn number_before(text: &str, words: &str) -> Option<f64> {
    text.split_once(words)?.0.split_whitespace().next_back()?.parse().ok()
}

fn report(line: &Line, figures: &BTreeMap<String, Vec<f64>>) -> Option<Value> {
    let (name, what, unit, mark) = line;
    let spread = Spread::of(figures.get(*name)?)?;
    Some(json!({ "name": name, "what": what, "median": spread.median, "least": spread.least,
        "most": spread.most, "unit": unit, "mark": mark }))
}

fn markdown(host: &str, rounds: usize, lines: &[Value]) -> String {
    let head = format!(
        "# Shared memory across nodes\n\n{host}; {rounds} rounds, median (least to greatest).\n\n| | | unit | mark |\n|---|---|---|---|\n"
    );
    lines.iter().fold(head, |text, line| {
        let number = |key: &str| line[key].as_f64().unwrap_or(f64::NAN);
        let word = |key: &str| line[key].as_str().unwrap_or_default();
        let spread =
            format!("{:.2} ({:.2} to {:.2})", number("median"), number("least"), number("most"));
        text + &format!("| {} | {spread} | {} | {} |\n", word("what"), word("unit"), word("mark"))
    })
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn numbers_are_found_by_the_words_behind_them() {
        let text = "on 2 nodes: 1.85 times as fast as one, 2.4 % noticing writes";
        assert_eq!(number_before(text, " times as fast as one"), Some(1.85));
        assert_eq!(number_before(text, " % noticing writes"), Some(2.4));
        assert_eq!(number_before("fast as one", " times as fast as one"), None);
    }
}
