//! The tables: look-ups and bytes, TLB misses, lines a miss.

use super::SHAPES;
use crate::statistics::Spread;
use core::fmt::Write;
use serde_json::{Value, json};

/// Upper bounds for a table, as ratios to another one in the same space: time, and bytes per page.
const MARKS: [(&str, &str, &str, &str, f64); 3] = [
    ("islands", "clustered, 8 in a line", "radix, 4 levels", "ns", 0.7),
    ("islands", "clustered, 8 in a line", "radix, 4 levels", "bytes", 1.0 / 15.0),
    ("dense", "clustered, 8 in a line", "linear", "ns", 1.5),
];

/// All of it.
#[derive(Debug)]
pub struct Report {
    pub host: String,
    pub rounds: usize,
    /// Result lines, all rounds.
    pub lines: Vec<Value>,
    pub notes: Vec<String>,
}

impl Report {
    pub fn to_json(&self) -> Value {
        json!({ "host": self.host, "rounds": self.rounds, "lines": self.lines, "notes": self.notes })
    }

    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# Page tables for 64-bit spaces (paper 2)\n\n{}; {} rounds. Written by `bench/run --part pagetable`.\n",
            self.host, self.rounds
        );
        for note in &self.notes {
            put(&mut text, format_args!("\n- {note}"));
        }
        for shape in SHAPES {
            self.space(&mut text, shape);
        }
        self.marks(&mut text);
        for program in self.distinct("tlb", "program") {
            self.program(&mut text, &program);
        }
        text
    }

    /// The lines of a bench of which a field has this value.
    fn of<'a>(
        &'a self,
        bench: &'a str,
        field: &'a str,
        value: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter(move |line| line["bench"] == bench && line[field] == value)
    }

    fn distinct(&self, bench: &str, field: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for line in self.lines.iter().filter(|line| line["bench"] == bench) {
            let value = line[field].as_str().unwrap_or_default().to_owned();
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    }

    /// A number of one table in one space, in each round.
    fn values(&self, shape: &str, name: &str, field: &str) -> Vec<f64> {
        let lines = self.of("maps", "shape", shape).filter(|line| line["name"] == name);
        lines.filter_map(|line| line[field].as_f64()).collect()
    }

    /// The ratio of two tables in one space, round by round.
    fn ratio(&self, shape: &str, name: &str, base: &str, field: &str) -> Option<Spread> {
        let pairs =
            self.values(shape, name, field).into_iter().zip(self.values(shape, base, field));
        Spread::of(&pairs.map(|(value, base)| value / base).collect::<Vec<_>>())
    }

    fn space(&self, text: &mut String, shape: &str) {
        let mut names: Vec<&str> = Vec::new();
        for name in self.of("maps", "shape", shape).filter_map(|line| line["name"].as_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let Some(&base) = names.first() else { return };
        put(
            text,
            format_args!(
                "\n## Random look-ups, {shape} space\n\n| | ns | over {base} (least to greatest round) | bytes a page |\n|---|---|---|---|\n"
            ),
        );
        for name in names {
            let Some(ns) = Spread::of(&self.values(shape, name, "ns")) else { continue };
            let ratio = self.ratio(shape, name, base, "ns").map(shown).unwrap_or_default();
            let bytes = self.values(shape, name, "bytes");
            let bytes = bytes.first().map_or("-".into(), |bytes| format!("{bytes:.1}"));
            put(text, format_args!("| {name} | {:.1} | {ratio} | {bytes} |\n", ns.median));
        }
    }

    fn marks(&self, text: &mut String) {
        text.push_str("\n| mark | of | ratio | met |\n|---|---|---|---|\n");
        for (shape, name, base, field, mark) in MARKS {
            let Some(ratio) = self.ratio(shape, name, base, field) else { continue };
            let met = if ratio.median <= mark { "yes" } else { "no" };
            put(
                text,
                format_args!(
                    "| {name} over {base}, {shape} | {field} | {} of at most {mark:.3} | {met} |\n",
                    shown(ratio)
                ),
            );
        }
    }

    fn program(&self, text: &mut String, program: &str) {
        let Some(first) = self.of("tlb", "program", program).next() else { return };
        put(
            text,
            format_args!(
                "\n## Touches of {program}\n\n{} touches of {} pages; TLBs of 64 entries.\n\n| | misses | sub-block misses | per 1000 touches | over 4 KiB pages |\n|---|---|---|---|---|\n",
                first["references"], first["pages"]
            ),
        );
        for line in self.of("tlb", "program", program) {
            put(
                text,
                format_args!(
                    "| {} | {} | {} | {:.3} | {:.2} |\n",
                    line["name"].as_str().unwrap_or_default(),
                    line["misses"],
                    line["subblock_misses"],
                    line["per_1000"].as_f64().unwrap_or_default(),
                    line["ratio"].as_f64().unwrap_or_default()
                ),
            );
        }
        text.push_str("\n| | lines a miss | of these not in 32 KiB | bytes a page | with sub-blocks |\n|---|---|---|---|---|\n");
        for line in self.of("walks", "program", program) {
            let number = |field: &str| line[field].as_f64().unwrap_or_default();
            put(
                text,
                format_args!(
                    "| {} | {:.2} | {:.3} | {:.1} | {:.1} |\n",
                    line["name"].as_str().unwrap_or_default(),
                    number("lines"),
                    number("lines_missed"),
                    number("bytes"),
                    number("bytes_subblocks")
                ),
            );
        }
    }
}

fn shown(spread: Spread) -> String {
    format!("{:.2} ({:.2} to {:.2})", spread.median, spread.least, spread.most)
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes any text");
}
