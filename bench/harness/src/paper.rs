//! `kyocho paper`: every table and figure of the five papers, beside what was published.
//!
//! The experiments are the parts of `bench/run`. This module chooses the parts that the wanted
//! figures need, runs them, and puts published and measured values together: a page for readers, and
//! JSON and CSV for programs. A part that fails does not end the run; its figures say why.

mod catalogue;
mod chart;
mod data;
mod escape;
mod figure;
mod page;
mod results;

use crate::{Options, PartName, host, measure, process, write};
use catalogue::Entry;
use figure::Figure;
use results::Results;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measures every table and figure of the five papers again, and writes a page beside what was
/// published.
#[derive(Debug, clap::Args)]
pub struct PaperOptions {
    /// Small sizes and two rounds, to see that everything runs
    #[arg(long)]
    quick: bool,
    /// Only these: the number of a paper, or a table or figure such as 1.table2
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds; the default is 3, with --quick 2
    #[arg(long)]
    rounds: Option<usize>,
    /// Print the values as JSON too
    #[arg(long)]
    json: bool,
    /// Folder of the page
    #[arg(long, default_value = "bench/out/paper")]
    out: PathBuf,
    /// Measure nothing: take the results of an earlier run from DIR, which is the folder `parts` of
    /// its page
    #[arg(long, value_name = "DIR")]
    measured: Option<PathBuf>,
}

/// The parts in the order in which they run, and about how many seconds each takes on two cores,
/// with `--quick` and in full.
const PARTS: [(PartName, &str, [u32; 2]); 8] = [
    (PartName::Lines, "lines", [2, 2]),
    (PartName::Threads, "threads", [20, 120]),
    (PartName::Locks, "locks", [60, 420]),
    (PartName::Pagetable, "pagetable", [30, 120]),
    (PartName::Gates, "gates", [20, 60]),
    (PartName::Unix, "unix", [60, 400]),
    (PartName::Cells, "cells", [60, 200]),
    (PartName::Stranded, "stranded", [40, 400]),
];
/// The longest part, which comes last.
const DSM: (PartName, &str, [u32; 2]) = (PartName::Dsm, "dsm", [90, 600]);
/// What `kernel/mips/run --evaluate` writes.
const MIPS_JSON: &str = "bench/out/mips.json";

/// Measures, and writes the page.
///
/// # Errors
/// A name of `--only` is wrong, or a file cannot be written; and after the page was written, if a
/// part failed.
pub fn run(options: &PaperOptions) -> Result<(), String> {
    let entries = catalogue::chosen(&options.only)?;
    let results = match &options.measured {
        Some(folder) => read_parts(folder),
        None => measure_parts(options, &entries)?,
    };
    let figures: Vec<(&'static Entry, Figure)> = entries
        .into_iter()
        .map(|entry| (entry, (entry.read)(&results).unwrap_or_else(Figure::missing)))
        .collect();
    let host = results.host().unwrap_or_else(host::describe);
    let date = process::run(Command::new("date").arg("+%Y-%m-%d")).map(|run| run.output);
    let date = date.unwrap_or_default();
    let run = page::Run {
        host: &host,
        date: date.trim(),
        command: &command_line(options),
        is_quick: options.quick,
    };
    let json = data::json(&run, &figures);
    write(&options.out, "index.html", &page::page(&run, &figures))?;
    write(&options.out, "paper.json", &format!("{json:#}\n"))?;
    write(&options.out, "paper.csv", &data::csv(&figures))?;
    if options.json {
        println!("{json:#}");
    }
    eprintln!("paper: {}", options.out.join("index.html").display());
    results.failures()
}

/// The command line of this run, for its page.
fn command_line(options: &PaperOptions) -> String {
    let mut line = String::from("kyocho paper");
    if options.quick {
        line += " --quick";
    }
    if !options.only.is_empty() {
        line += &format!(" --only {}", options.only.join(","));
    }
    line
}

/// Runs the parts that `entries` need, and keeps their results in the folder `parts`.
fn measure_parts(options: &PaperOptions, entries: &[&'static Entry]) -> Result<Results, String> {
    let folder = options.out.join("parts");
    std::fs::create_dir_all(&folder)
        .map_err(|failure| format!("cannot make {}: {failure}", folder.display()))?;
    let is_needed = |part: &PartName| entries.iter().any(|entry| entry.parts.contains(part));
    let parts: Vec<_> =
        PARTS.into_iter().chain([DSM]).filter(|(part, ..)| is_needed(part)).collect();
    let seconds = |parts: &[(PartName, &str, [u32; 2])]| -> u32 {
        parts.iter().map(|(_, _, seconds)| seconds[usize::from(!options.quick)]).sum()
    };
    let mut results = Results::default();
    for (index, (part, name, _)) in parts.iter().enumerate() {
        eprintln!(
            "paper: {} of {}: {name}; about {} min left, without building",
            index + 1,
            parts.len(),
            seconds(&parts[index..]).div_ceil(60)
        );
        let result = measure(*part, &options_of(options, *part, entries)).map(|part| part.json);
        match &result {
            Ok(json) => write(&folder, &format!("{name}.json"), &format!("{json:#}\n"))?,
            Err(why) => eprintln!("paper: {name} failed: {why}"),
        }
        results.insert(name, result);
    }
    results.add_optional("mips", mips(&folder));
    Ok(results)
}

/// The results of MIPS in the emulator, which `make mips` leaves behind.
fn mips(folder: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(MIPS_JSON).map_err(|_| {
        "the emulated MIPS machine was not measured; `make mips` builds it and measures in about \
         five minutes, then run this again"
            .to_owned()
    })?;
    write(folder, "mips.json", &text)?;
    serde_json::from_str(&text).map_err(|failure| format!("{MIPS_JSON}: {failure}"))
}

/// What a part is asked to measure: no peers that no paper names.
fn options_of(options: &PaperOptions, part: PartName, entries: &[&'static Entry]) -> Options {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut workloads: Vec<&str> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.parts.contains(&part)) {
        workloads.extend(
            entry
                .workloads
                .iter()
                .filter(|work| !workloads.contains(work))
                .copied()
                .collect::<Vec<_>>(),
        );
    }
    let peers: &[&str] = match part {
        PartName::Threads => &["kyocho", "pthread"],
        PartName::Gates => &["kyocho"],
        _ => &[],
    };
    let rounds = options.rounds.unwrap_or(if options.quick { 2 } else { 3 });
    Options::of_paper(options.quick, words(&workloads), words(peers), rounds)
}

/// The results of an earlier run.
fn read_parts(folder: &Path) -> Results {
    let mut results = Results::default();
    let read = |name: &str| {
        let path = folder.join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|failure| format!("{}: {failure}", path.display()))?;
        serde_json::from_str(&text).map_err(|failure| format!("{}: {failure}", path.display()))
    };
    for (_, name, _) in PARTS.into_iter().chain([DSM]) {
        results.add_optional(name, read(name));
    }
    results.add_optional("mips", read("mips"));
    results
}
