//! Results of the Lisp programs.

use super::{Lisp, geometric_mean, ratios};
use crate::statistics::Spread;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// One program: its values on each system, round by round, or its failure there.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Kyocho's mark, in the unit of the values.
    pub(super) mark: Option<f64>,
    pub(super) values: [Result<Vec<f64>, String>; 2],
}

impl Entry {
    /// No values yet.
    pub(super) fn new(name: &str, mark: Option<f64>) -> Self {
        Self { name: name.into(), mark, values: [Ok(Vec::new()), Ok(Vec::new())] }
    }

    /// No values yet; a system that cannot run the program is marked as failed.
    pub(super) fn warm(name: &str, mark: Option<f64>, systems: &[Lisp; 2], file: &Path) -> Self {
        let warm_up = |lisp: &Lisp| lisp.warm_up(file).map(|()| Vec::new());
        Self { name: name.into(), mark, values: systems.each_ref().map(warm_up) }
    }

    /// Measures once more, unless it failed on that system before.
    pub(super) fn add(&mut self, system: usize, measure: impl FnOnce() -> Result<f64, String>) {
        let Ok(values) = &mut self.values[system] else { return };
        match measure() {
            Ok(value) => values.push(value),
            Err(why) => self.values[system] = Err(why),
        }
    }

    fn cell(&self, system: usize) -> String {
        match self.values[system].as_deref().map(Spread::of) {
            Ok(Some(spread)) => shown(&spread),
            Ok(None) => "-".into(),
            Err(_) => "fails".into(),
        }
    }

    fn to_json(&self, titles: &[String; 2]) -> Value {
        let values = |system: usize| match &self.values[system] {
            Ok(values) => json!(values),
            Err(why) => json!({ "failed": why }),
        };
        json!({ "name": self.name, "mark": self.mark, &titles[0]: values(0), &titles[1]: values(1),
            "ratio": ratios(self).map(|ratio| ratio.median) })
    }
}

/// All parts of the comparison.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) titles: [String; 2],
    pub(super) host: String,
    pub(super) rounds: usize,
    pub(super) programs: Vec<Entry>,
    pub(super) start: Entry,
    pub(super) threads: Vec<Entry>,
    pub(super) parked: Vec<Result<(u64, f64), String>>,
}

impl Report {
    fn geometric_mean(&self) -> Option<f64> {
        let medians: Option<Vec<f64>> =
            self.programs.iter().map(|entry| ratios(entry).map(|ratio| ratio.median)).collect();
        geometric_mean(&medians?)
    }

    pub(super) fn to_json(&self) -> Value {
        let entries = |entries: &[Entry]| -> Vec<Value> {
            entries.iter().map(|entry| entry.to_json(&self.titles)).collect()
        };
        let parked: Vec<_> = self
            .parked
            .iter()
            .zip(&self.titles)
            .map(|(parked, title)| match parked {
                Ok((count, bytes)) => json!({ "system": title, "threads": count, "bytes": bytes }),
                Err(why) => json!({ "system": title, "failed": why }),
            })
            .collect();
        json!({ "host": self.host, "rounds": self.rounds, "unit": "us",
            "programs": entries(&self.programs), "geometric_mean": self.geometric_mean(),
            "start_ms": self.start.to_json(&self.titles), "threads": entries(&self.threads),
            "parked": parked })
    }

    pub(super) fn to_markdown(&self) -> String {
        let mut text = format!(
            "# Lisp side by side\n\n{}; {} rounds. Written by `bench/run`.\n\n\
             ## Processor time of one run, us: median (least to greatest)\n\n",
            self.host, self.rounds
        );
        self.table(&mut text, &self.programs);
        match self.geometric_mean() {
            Some(mean) => put(
                &mut text,
                format_args!(
                    "\nGeometric mean of the ratios: {mean:.2} (mark: 2.0, and 4.0 for each).\n"
                ),
            ),
            None => text += "\nNo geometric mean: not every program ran on both.\n",
        }
        if !self.parked.is_empty() {
            self.start_and_threads(&mut text);
        }
        self.failures(&mut text);
        text
    }

    fn start_and_threads(&self, text: &mut String) {
        *text += "\n## Start, ms of wall time\n\n";
        self.table(text, core::slice::from_ref(&self.start));
        *text += "\n## Threads, us of wall time\n\n";
        self.table(text, &self.threads);
        *text += "\n## Memory of a waiting thread\n\n";
        for (parked, title) in self.parked.iter().zip(&self.titles) {
            let line = parked.as_ref().map_or_else(Clone::clone, |(count, bytes)| {
                format!("{bytes:.0} B each of {count}")
            });
            put(text, format_args!("- {title}: {line}\n"));
        }
    }

    fn table(&self, text: &mut String, entries: &[Entry]) {
        let [first, second] = &self.titles;
        put(text, format_args!("| | {first} | {second} | ratio | mark |\n|---|---|---|---|---|\n"));
        for entry in entries {
            let ratio = ratios(entry).map_or_else(|| "-".into(), |ratio| shown(&ratio));
            let mark = entry.mark.map_or_else(String::new, |mark| format!("<= {mark}"));
            let (first, second) = (entry.cell(0), entry.cell(1));
            put(text, format_args!("| {} | {first} | {second} | {ratio} | {mark} |\n", entry.name));
        }
    }

    fn failures(&self, text: &mut String) {
        let entries = self.programs.iter().chain([&self.start]).chain(&self.threads);
        let failures = entries.flat_map(|entry| {
            let outcomes = entry.values.iter().zip(&self.titles);
            outcomes
                .filter_map(|(values, title)| Some((&entry.name, title, values.as_ref().err()?)))
        });
        for (name, title, why) in failures {
            put(text, format_args!("\n{name}, {title}: {why}\n"));
        }
    }
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes any text");
}

fn shown(spread: &Spread) -> String {
    let Spread { median, least, most } = spread;
    let digits = if median.abs() >= 100.0 { 0 } else { 2 };
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}
