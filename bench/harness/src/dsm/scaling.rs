//! Figures 4 and 5: WATER and SOR on one to eight nodes.
//!
//! A speed-up is the time on one node over that on several, within a round. Nodes beyond the number
//! of cores share them, so processor time is reported as well.

use super::number_before;
use crate::process;
use crate::statistics::Spread;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

const RUN_SECONDS_MAX: u32 = 300;
/// The numbers of nodes.
pub(super) const NODES: [u32; 4] = [1, 2, 4, 8];

const TCP: &[&str] = &["--transport", "tcp"];
/// Writes noticed as in the paper.
const TRAPS: &[&str] = &["--transport", "tcp", "--detection", "protect"];

/// A curve of a figure.
#[derive(Debug)]
pub(super) struct Curve {
    /// Its name in the report.
    pub(super) name: &'static str,
    figure: u32,
    what: &'static str,
    how: &'static [&'static str],
    program: &'static str,
    words: &'static [&'static str],
    /// Repetitions of its unit of work: in full, and with `--quick`.
    counts: [&'static str; 2],
    /// Words behind the count.
    kind: &'static [&'static str],
}

/// All curves.
pub(super) const CURVES: [Curve; 6] = [
    Curve::water("water", "writes detected by this machine's default", TCP),
    Curve::water("water-traps", "writes detected by SIGSEGV, as in the paper", TRAPS),
    Curve::sor("ordinary", "ordinary barrier", TCP, &["ordinary"]),
    Curve::sor("single", "single-read-write barrier", TCP, &["single"]),
    Curve::sor("ordinary-traps", "ordinary barrier, SIGSEGV as in the paper", TRAPS, &["ordinary"]),
    Curve::sor(
        "single-traps",
        "single-read-write barrier, SIGSEGV as in the paper",
        TRAPS,
        &["single"],
    ),
];

impl Curve {
    const fn water(name: &'static str, what: &'static str, how: &'static [&'static str]) -> Self {
        let counts = ["2", "1"];
        Self { name, figure: 4, what, how, program: "water", words: &["1728"], counts, kind: &[] }
    }

    const fn sor(
        name: &'static str,
        what: &'static str,
        how: &'static [&'static str],
        kind: &'static [&'static str],
    ) -> Self {
        let (words, counts) = (&["1024", "1536"], ["100", "20"]);
        Self { name, figure: 5, what, how, program: "sor", words, counts, kind }
    }
}

/// What a run prints: its key in the report, and the words behind it.
const FIGURES: [(&str, [&str; 2]); 5] = [
    ("time_us", [" us a step", " us a round"]),
    ("processor_us", [" us of processor time a step", " us of processor time a round"]),
    ("over_sequential", [" times as fast as one"; 2]),
    ("detecting_percent", [" % noticing writes"; 2]),
    ("traps_percent", [" % of the time outside of its own code in traps"; 2]),
];

/// The times of all rounds.
#[derive(Debug, Default)]
pub(super) struct Scaling {
    /// By curve, nodes and key.
    values: BTreeMap<(&'static str, u32, &'static str), Vec<f64>>,
    counts: BTreeMap<&'static str, &'static str>,
}

impl Scaling {
    /// Runs a curve's program on so many nodes.
    ///
    /// # Errors
    /// The run fails, or prints no time.
    pub(super) fn run(
        &mut self,
        curve: &Curve,
        nodes: u32,
        is_quick: bool,
        kyocho: &Path,
        examples: &Path,
    ) -> Result<(), String> {
        let count = curve.counts[usize::from(is_quick)];
        self.counts.insert(curve.name, count);
        let mut command = process::limited(kyocho, RUN_SECONDS_MAX);
        command.args(["dsm", "run", "-n", &nodes.to_string()]).args(curve.how).arg("--");
        command.arg(examples.join(curve.program)).args(curve.words).arg(count).args(curve.kind);
        let output = process::run(&mut command)?.output;
        for (key, words) in FIGURES {
            let value = words.iter().find_map(|words| number_before(&output, words));
            if let Some(value) = value.filter(|value| value.is_finite()) {
                self.values.entry((curve.name, nodes, key)).or_default().push(value);
            } else if key == "time_us" {
                return Err(format!("{} on {nodes} nodes printed no time", curve.name));
            }
        }
        Ok(())
    }

    fn values(&self, curve: &Curve, nodes: u32, key: &'static str) -> &[f64] {
        self.values.get(&(curve.name, nodes, key)).map_or(&[], Vec::as_slice)
    }

    /// By round: the time on one node over the time on so many.
    fn speed_ups(&self, curve: &Curve, nodes: u32) -> Vec<f64> {
        let [one, many] = [1, nodes].map(|nodes| self.values(curve, nodes, "time_us"));
        one.iter().zip(many).map(|(one, many)| one / many).collect()
    }

    fn point(&self, curve: &Curve, nodes: u32) -> Value {
        let spread = |key| Spread::of(self.values(curve, nodes, key)).map(Spread::to_json);
        let mut point = json!({ "nodes": nodes,
            "speed_up": Spread::of(&self.speed_ups(curve, nodes)).map(Spread::to_json) });
        for (key, _) in FIGURES {
            // The program compares itself with the sequential one while the other nodes compute it
            // too, so only the comparison on one node is fair.
            if key != "over_sequential" || nodes == 1 {
                point[key] = json!(spread(key));
            }
        }
        point
    }

    /// A figure's curves.
    pub(super) fn figure(&self, figure: u32) -> Value {
        let curves = CURVES.iter().filter(|curve| curve.figure == figure);
        let curve = |curve: &Curve| {
            let points: Vec<_> = NODES.iter().map(|nodes| self.point(curve, *nodes)).collect();
            json!({ "name": curve.name, "what": curve.what, "program": curve.program,
                "size": curve.words, "repetitions": self.counts.get(curve.name),
                "points": points })
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        json!({ "cores": cores, "unit_of_work": if figure == 4 { "step" } else { "round" },
            "note": format!("all nodes run on this machine, whose {cores} cores they share; \
                processor_us is the processor time of all nodes for one unit of work; \
                detecting_percent is a share of node 0's whole time, traps_percent that of write \
                traps in its time outside of the program's own code, as the paper counts"),
            "curves": curves.map(curve).collect::<Vec<_>>() })
    }

    /// A figure's curves as a table.
    pub(super) fn markdown(&self, figure: u32) -> String {
        let json = self.figure(figure);
        let unit = json["unit_of_work"].as_str().unwrap_or_default();
        let mut text = format!(
            "\n## Figure {figure}, by number of nodes ({} cores)\n\n| | nodes | speed-up over one | µs a {unit} | processor time, µs a {unit} | detecting writes, % | traps, % of the time outside of its own code |\n|---|---|---|---|---|---|---|\n",
            json["cores"]
        );
        for curve in json["curves"].as_array().into_iter().flatten() {
            for point in curve["points"].as_array().into_iter().flatten() {
                text += &row(curve, point);
            }
        }
        text
    }
}

/// A line of the table: a curve at one number of nodes.
fn row(curve: &Value, point: &Value) -> String {
    let median = |key: &str, digits: usize| {
        let value = point[key]["median"].as_f64();
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    format!(
        "| {}: {} | {} | {} | {} | {} | {} | {} |\n",
        curve["program"].as_str().unwrap_or_default(),
        curve["what"].as_str().unwrap_or_default(),
        point["nodes"],
        median("speed_up", 2),
        median("time_us", 0),
        median("processor_us", 0),
        median("detecting_percent", 1),
        median("traps_percent", 1),
    )
}

#[cfg(test)]
mod tests {
    use super::{CURVES, Scaling};

    #[test]
    fn a_speed_up_is_taken_within_a_round() {
        let mut scaling = Scaling::default();
        let name = CURVES[2].name;
        scaling.values.insert((name, 1, "time_us"), vec![8.0, 80.0, 800.0]);
        scaling.values.insert((name, 2, "time_us"), vec![4.0, 20.0, 100.0]);
        let figure = scaling.figure(5);
        let points = &figure["curves"][0]["points"];
        assert_eq!(points[0]["speed_up"]["median"], 1.0);
        assert_eq!(points[1]["speed_up"]["median"], 4.0);
        assert!(points[2]["speed_up"].is_null());
    }
}
