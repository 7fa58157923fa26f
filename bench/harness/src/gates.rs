//! Paper 1, §4: calls between address spaces by gates, by a Unix stream socket, by the same gate
//! served by a kernel thread, and by other libraries.
//!
//! Two programs, `bench/gates` and `bench/gates/peers`, time the calls of one system at a time. A
//! round runs all systems one after the other in each setting; a ratio is taken within the round.
//! Two figures are times: the delay until a server's death is noticed, and the longest call of a
//! real-time caller.

use crate::progress::Progress;
use crate::statistics::Spread;
use crate::{Options, Part, build, process};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN_SECONDS_MAX: u32 = 300;

/// A setting: where the server runs, bytes each way, and calls in a run.
struct Setting {
    place: &'static str,
    bytes: u32,
    calls: u32,
    /// The upper bound as a ratio to the socket's time.
    mark: &'static str,
}

const fn setting(place: &'static str, bytes: u32, calls: u32, mark: &'static str) -> Setting {
    Setting { place, bytes, calls, mark }
}

const SETTINGS: [Setting; 6] = [
    setting("same", 0, 20_000, "<= 0.35"),
    setting("other", 0, 20_000, "<= 0.02"),
    setting("same", 4096, 20_000, "<= 0.45"),
    setting("other", 4096, 20_000, "<= 0.03"),
    setting("same", 1 << 20, 1_000, "<= 0.25"),
    setting("other", 1 << 20, 1_000, "<= 0.25"),
];

/// A comparison of two systems in a setting, and its mark.
struct Comparison {
    setting: usize,
    system: &'static str,
    baseline: &'static str,
    mark: &'static str,
}

/// Other libraries, in `bench/gates/peers`.
const PEERS: [&str; 4] = ["iceoryx2", "ipc-channel", "tarpc", "tonic"];
/// Some need milliseconds for a copy, so they make fewer calls by this factor.
const PEERS_FEWER: u32 = 10;

/// Figures that are times: description, arguments, field of the output, and mark.
const TIMES: [(&str, &[&str], &str, &str); 2] = [
    ("a killed server is noticed, median", &["death"], "p50", "< 1"),
    (
        "longest call of a FIFO caller beside 4 programs that spin",
        &["urgent", "4", "10000"],
        "max",
        "< 1",
    ),
];

/// The programs.
struct Programs {
    gates: PathBuf,
    peers: Option<PathBuf>,
    /// Factor by which every run is shorter.
    smaller: u32,
}

impl Programs {
    /// Builds the programs. Also returns the participating peers, or the reason why they could not
    /// be built.
    fn build(options: &Options) -> Result<(Self, Vec<&'static str>, Option<String>), String> {
        let into = options.build_into();
        let gates = build_program(&into, "bench/gates/Cargo.toml", "gates")?;
        let smaller = if options.quick { 20 } else { 1 };
        let is_wanted =
            |peer: &&str| options.peers.is_empty() || options.peers.iter().any(|name| name == peer);
        let wanted: Vec<&str> = PEERS.into_iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            return Ok((Self { gates, peers: None, smaller }, wanted, None));
        }
        match build_program(&into, "bench/gates/peers/Cargo.toml", "gates-peers") {
            Ok(peers) => Ok((Self { gates, peers: Some(peers), smaller }, wanted, None)),
            Err(why) => {
                let note = format!("skipped {}: {why}", wanted.join(", "));
                eprintln!("bench: {note}");
                Ok((Self { gates, peers: None, smaller }, Vec::new(), Some(note)))
            }
        }
    }

    /// The median call of one run, in nanoseconds.
    fn call_ns(&self, setting: &Setting, system: &str) -> Result<f64, String> {
        let peer = self.peers.as_ref().filter(|_| PEERS.contains(&system));
        let fewer = self.smaller * peer.map_or(1, |_| PEERS_FEWER);
        let calls = (setting.calls / fewer).max(1).to_string();
        let words = ["call", system, setting.place, &setting.bytes.to_string(), &calls];
        figure_of(peer.unwrap_or(&self.gates), &words, "p50")?
            .ok_or_else(|| format!("{system} printed no figure"))
    }

    /// One round of a setting: the ratio of each comparison in it. Each system runs once.
    fn compare(
        &self,
        number: usize,
        comparisons: &[Comparison],
        ratios: &mut [Vec<f64>],
    ) -> Result<(), String> {
        let mut known: HashMap<&str, f64> = HashMap::new();
        let mut ns = |system| match known.get(system) {
            Some(ns) => Ok(*ns),
            None => self.call_ns(&SETTINGS[number], system).inspect(|ns| {
                known.insert(system, *ns);
            }),
        };
        for (comparison, ratios) in comparisons.iter().zip(ratios) {
            if comparison.setting == number {
                // The baseline runs first.
                let baseline_ns = ns(comparison.baseline)?;
                ratios.push(ns(comparison.system)? / baseline_ns);
            }
        }
        Ok(())
    }
}

/// Measures everything; the report's files are `gates.*`.
///
/// # Errors
/// The program cannot be built, or a run of it fails.
pub fn run(options: &Options) -> Result<Part, String> {
    let (programs, peers, note) = Programs::build(options)?;
    let comparisons = comparisons(&peers);
    let mut progress = Progress::new(options.rounds() * (SETTINGS.len() + TIMES.len()));
    let mut ratios = vec![Vec::new(); comparisons.len()];
    let mut times_ns = vec![Vec::new(); TIMES.len()];
    for round in 1..=options.rounds() {
        for (number, Setting { bytes, place, .. }) in SETTINGS.iter().enumerate() {
            progress.step(&format!("round {round}: {bytes} bytes, {place} core"));
            programs.compare(number, &comparisons, &mut ratios)?;
        }
        for ((what, words, figure, _), times_ns) in TIMES.iter().zip(&mut times_ns) {
            progress.step(&format!("round {round}: {what}"));
            times_ns.extend(figure_of(&programs.gates, words, figure)?);
        }
    }
    drop(progress);
    let lines = lines(&comparisons, &ratios, &times_ns);
    let host = &options.host;
    let mut markdown = markdown(host, options.rounds(), &lines);
    markdown.extend(note.iter().map(|note| format!("\n{note}\n")));
    let json = json!({ "host": host, "rounds": options.rounds(), "lines": lines, "note": note });
    Ok(Part { name: "gates", json, markdown, plots: Vec::new() })
}

/// All comparisons, in the order of the report.
fn comparisons(peers: &[&'static str]) -> Vec<Comparison> {
    let beside = |baseline: &'static str| {
        SETTINGS.iter().enumerate().map(move |(number, setting)| Comparison {
            setting: number,
            system: "kyocho",
            baseline,
            mark: if baseline == "unix-socket" { setting.mark } else { "" },
        })
    };
    let threads =
        |baseline, mark| Comparison { setting: 0, system: "kernel-threads", baseline, mark };
    let mut all: Vec<Comparison> = beside("unix-socket").collect();
    // The second is an upper bound of the first.
    all.extend([threads("kyocho", ">= 6.3"), threads("floor", "")]);
    all.extend(peers.iter().flat_map(|peer| beside(peer)));
    all
}

fn build_program(into: &Path, manifest: &str, name: &str) -> Result<PathBuf, String> {
    eprintln!("bench: building {name}");
    let into = into.canonicalize().map_err(|failure| failure.to_string())?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--manifest-path", manifest]);
    build::finish(cargo.arg("--target-dir").arg(&into))?;
    Ok(into.join("release").join(name))
}

/// One figure of one run; `None` if the host does not permit it.
fn figure_of(program: &Path, words: &[&str], figure: &str) -> Result<Option<f64>, String> {
    let mut command = process::limited(program, RUN_SECONDS_MAX);
    let run = process::run(command.args(words))?;
    let line: Option<Value> = run.output.lines().find_map(|line| serde_json::from_str(line).ok());
    Ok(line.and_then(|line| line["ns"][figure].as_f64()))
}

/// The lines of the report: name, median, least and greatest, unit and mark.
fn lines(comparisons: &[Comparison], ratios: &[Vec<f64>], times_ns: &[Vec<f64>]) -> Vec<Value> {
    let line = |what: String, values: &[f64], unit, mark| {
        let spread = Spread::of(values)?;
        Some(json!({ "what": what, "median": spread.median, "least": spread.least,
            "most": spread.most, "unit": unit, "mark": mark }))
    };
    let compared = comparisons.iter().zip(ratios).filter_map(|(comparison, ratios)| {
        let Comparison { setting, system, baseline, mark } = comparison;
        let Setting { place, bytes, .. } = &SETTINGS[*setting];
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
