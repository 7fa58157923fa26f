//! Timing short operations side by side.

use kyocho_sys::clock::monotonic_ns;
use serde_json::{Value, json};

const REPEATS: usize = 31;

/// An operation to time, repeated a given number of rounds.
pub struct Subject {
    name: &'static str,
    rounds: u64,
    run: Box<dyn FnMut(u64)>,
    ns: Vec<f64>,
}

impl Subject {
    /// `rounds` in each repeat: enough to dominate reading the clock, few enough to finish.
    pub fn new(name: &'static str, rounds: u64, run: impl FnMut(u64) + 'static) -> Self {
        Self { name, rounds, run: Box::new(run), ns: Vec::new() }
    }
}

/// Median and the middle four fifths.
pub fn spread(values: &[f64]) -> Value {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |tenth: usize| sorted[(sorted.len() - 1) * tenth / 10];
    json!({ "median": at(5), "p10": at(1), "p90": at(9) })
}

/// Times all subjects, one after the other in every repeat, and prints a line each: nanoseconds,
/// and the ratio to the first subject in the same repeat.
pub fn print_side_by_side(bench: &str, mut subjects: Vec<Subject>) {
    for subject in &mut subjects {
        (subject.run)(subject.rounds / 4); // warms up
    }
    for _ in 0..REPEATS {
        for subject in &mut subjects {
            let start_ns = monotonic_ns();
            (subject.run)(subject.rounds);
            subject.ns.push((monotonic_ns() - start_ns) as f64 / subject.rounds as f64);
        }
    }
    for subject in &subjects {
        let ratios: Vec<f64> =
            subject.ns.iter().zip(&subjects[0].ns).map(|(ns, base)| ns / base).collect();
        println!(
            "{}",
            json!({ "bench": bench, "name": subject.name, "ns": spread(&subject.ns),
                "ratio": spread(&ratios) })
        );
    }
}
