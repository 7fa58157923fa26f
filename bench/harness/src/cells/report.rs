//! Times against cache sizes, and the paper's published ones.

use crate::statistics::Spread;
use serde_json::{Value, json};
use std::fmt::Write;

/// A program of the comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) file: &'static str,
    pub(super) title: &'static str,
    /// Seconds without and with caching in the paper's table 1 (SPARCstation 10, 1993).
    published: Option<(f64, f64)>,
}

impl Program {
    pub(super) const ACKERMANN: Self = Self {
        file: "deep/ack",
        title: "Ackermann (3 3)",
        published: Some((5.512_369, 1.414_618)),
    };
    pub(super) const QUICKSORT: Self = Self {
        file: "deep/qs72",
        title: "QuickSort of 72",
        published: Some((3.524_985, 0.496_792)),
    };
    pub(super) const TREES: Self = Self { file: "gcbench", title: "gcbench", published: None };
    pub(super) const LONG_SORT: Self =
        Self { file: "qs100k", title: "QuickSort of 100,000", published: None };
}

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    user_ms: f64,
    system_ms: f64,
    real_ms: f64,
    cells: f64,
    messages: f64,
}

impl Sample {
    /// Reads the line of `(system-call-statistics)`: `cell cache 100: 5320 cells in 54 messages;
    /// user 0.001 s + system 0.000 s = real 0.001 s; ...`.
    pub(super) fn from_statistics(output: &str) -> Option<Self> {
        let line = output.lines().find(|line| line.starts_with("cell cache "))?;
        let number_after = |mark: &str| -> Option<f64> {
            let rest = &line[line.find(mark)? + mark.len()..];
            rest.split(' ').next()?.parse().ok()
        };
        Some(Self {
            user_ms: number_after("; user ")? * 1e3,
            system_ms: number_after("+ system ")? * 1e3,
            real_ms: number_after("= real ")? * 1e3,
            cells: number_after(": ")?,
            messages: number_after("cells in ")?,
        })
    }

    /// Reads the value, in microseconds, that a program of `bench/lisp` prints.
    pub(super) fn from_result_line(output: &str) -> Option<Self> {
        let line: Value = output.lines().rev().find_map(|line| serde_json::from_str(line).ok())?;
        let real_ms = line.get("value")?.as_f64()? / 1e3;
        Some(Self { user_ms: real_ms, system_ms: 0.0, real_ms, cells: 0.0, messages: 0.0 })
    }
}

/// A program's times against the size of the cache.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) program: Program,
    /// The cache as the command line names it, and its runs.
    pub(super) points: Vec<(&'static str, Vec<Sample>)>,
}

/// Times of one point, in milliseconds; medians of its cells and messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) user: Spread,
    pub(super) system: Spread,
    pub(super) real: Spread,
    cells: f64,
    messages: f64,
}

impl Curve {
    pub(super) fn new(program: Program, caches: &[&'static str]) -> Self {
        Self { program, points: caches.iter().map(|&cache| (cache, Vec::new())).collect() }
    }

    /// The medians at a cache size.
    pub(super) fn at(&self, cache: &str) -> Option<Point> {
        let (_, samples) = self.points.iter().find(|(name, _)| *name == cache)?;
        let spread =
            |field: fn(&Sample) -> f64| Spread::of(&samples.iter().map(field).collect::<Vec<_>>());
        Some(Point {
            user: spread(|sample| sample.user_ms)?,
            system: spread(|sample| sample.system_ms)?,
            real: spread(|sample| sample.real_ms)?,
            cells: spread(|sample| sample.cells)?.median,
            messages: spread(|sample| sample.messages)?.median,
        })
    }

    fn to_json(&self) -> Value {
        let points: Vec<_> = self
            .points
            .iter()
            .filter_map(|(cache, _)| {
                let point = self.at(cache)?;
                Some(
                    json!({ "cache": cache, "user_ms": point.user.to_json(), "system_ms": point.system.to_json(),
                    "real_ms": point.real.to_json(),
                    "cells": point.cells, "messages": point.messages }),
                )
            })
            .collect();
        json!({ "program": self.program.title, "points": points })
    }

    fn table(&self, text: &mut String) {
        put(
            text,
            format_args!(
                "\n## {}: times against the size of the cache, ms\n\n| cache | cells | messages | user | system | real (least to greatest) | over no caching |\n|---|---|---|---|---|---|---|\n",
                self.program.title
            ),
        );
        let off = self.at("off");
        for (cache, _) in &self.points {
            let Some(point) = self.at(cache) else { continue };
            let Spread { median, least, most } = point.real;
            let gain = off.map_or(1.0, |off| off.real.median / median);
            put(
                text,
                format_args!(
                    "| {cache} | {} | {} | {:.3} | {:.3} | {median:.3} ({least:.3} to {most:.3}) | {gain:.2} |\n",
                    point.cells, point.messages, point.user.median, point.system.median
                ),
            );
        }
    }
}

/// All curves.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) host: String,
    pub(super) rounds: usize,
    pub(super) quicksort: Curve,
    pub(super) ackermann: Curve,
    /// On the compiled machine.
    pub(super) allocating: [Result<Curve, String>; 2],
}

impl Report {
    pub(super) fn to_json(&self) -> Value {
        let allocating: Vec<_> = self
            .allocating
            .iter()
            .map(|curve| curve.as_ref().map_or_else(|why| json!({ "failed": why }), Curve::to_json))
            .collect();
        let table_1: Vec<_> =
            [&self.ackermann, &self.quicksort].into_iter().filter_map(table_1_row).collect();
        json!({ "host": self.host, "rounds": self.rounds, "table_1": table_1,
            "figure_3": self.quicksort.to_json(), "figure_4": self.ackermann.to_json(),
            "machine": allocating })
    }

    pub(super) fn to_markdown(&self) -> String {
        let mut text = format!(
            "# Caching cells for allocation (paper 4)\n\n{}; {} rounds, medians. Written by `bench/run`.\n\n\
             ## Table 1\n\n| program | no caching, ms | cache of 100, ms | auto, ms | ratio at 100 | ratio at auto | published: s, s | published ratio |\n|---|---|---|---|---|---|---|---|\n",
            self.host, self.rounds
        );
        for curve in [&self.ackermann, &self.quicksort] {
            table_1_line(&mut text, curve);
        }
        self.quicksort.table(&mut text);
        self.ackermann.table(&mut text);
        text += "\n## The compiled machine, programs that allocate: wall time of one run, ms\n\n";
        for curve in &self.allocating {
            machine_lines(&mut text, curve);
        }
        text
    }
}

/// A line of table 1: real times without a cache, with the size from which the paper's times are
/// flat, and with a size that adapts; and the ratios to no cache, of medians.
fn table_1_row(curve: &Curve) -> Option<Value> {
    let (published_off, published_on) = curve.program.published?;
    let real = |cache| Some(curve.at(cache)?.real);
    let (off, hundred, auto) = (real("off")?, real("100")?, real("auto")?);
    Some(json!({ "program": curve.program.title,
        "off_ms": off.to_json(), "cache_100_ms": hundred.to_json(), "auto_ms": auto.to_json(),
        "ratio_100": off.median / hundred.median, "ratio_auto": off.median / auto.median,
        "published_off_s": published_off, "published_on_s": published_on,
        "published_ratio": published_off / published_on }))
}

fn table_1_line(text: &mut String, curve: &Curve) {
    let Some(row) = table_1_row(curve) else { return };
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let [off, hundred, auto] =
        ["off_ms", "cache_100_ms", "auto_ms"].map(|key| number(&row[key]["median"]));
    let [ratio_100, ratio_auto, published_off, published_on, published_ratio] =
        ["ratio_100", "ratio_auto", "published_off_s", "published_on_s", "published_ratio"]
            .map(|key| number(&row[key]));
    put(
        text,
        format_args!(
            "| {} | {off:.3} | {hundred:.3} | {auto:.3} | {ratio_100:.2} | {ratio_auto:.2} | {published_off:.3}, {published_on:.3} | {published_ratio:.2} |\n",
            curve.program.title,
        ),
    );
}

fn machine_lines(text: &mut String, curve: &Result<Curve, String>) {
    match curve {
        Err(why) => put(text, format_args!("- {why}\n")),
        Ok(curve) => {
            let points: Vec<_> = curve
                .points
                .iter()
                .filter_map(|(cache, _)| {
                    Some(format!("{cache}: {:.1}", curve.at(cache)?.real.median))
                })
                .collect();
            put(text, format_args!("- {}: {}\n", curve.program.title, points.join(", ")));
        }
    }
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn the_statistics_line_is_read() {
        let line = "61\ncell cache 100: 5320 cells in 54 messages; user 0.001500 s + system 0.000250 s = real 0.001750 s; 0 collections\n";
        let sample = Sample::from_statistics(line).unwrap();
        let read =
            [sample.user_ms, sample.system_ms, sample.real_ms, sample.cells, sample.messages];
        assert_eq!(read, [1.5, 0.25, 1.75, 5320.0, 54.0]);
    }

    #[test]
    fn other_output_is_no_statistics() {
        assert!(Sample::from_statistics("61\n").is_none());
    }
}
