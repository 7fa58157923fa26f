//! The tables of paper 0, with the paper's figures and the measured ones.

use super::CROWDS;
use super::footprint::Footprint;
use crate::statistics::Spread;
use core::fmt::Write;
use serde_json::{Value, json};

/// Upper bounds of the cost of locks, as ratios to another lock of the same run.
const MARKS: [(&str, &str, f64); 5] = [
    ("biased lock, owner", "xchg + store", 0.5),
    ("rseq", "xchg + store", 1.3),
    ("restartable (PC-rollback)", "xchg + store", 0.8),
    ("tst mutex", "parking_lot Mutex", 1.0),
    ("tst semaphore", "glibc semaphore", 1.0),
];

/// The methods of figure 12, its operations, and the counterpart of the paper's method.
pub const METHODS: [&str; 6] =
    ["system-call", "lamport", "signals-blocked", "atomics", "restartable", "rseq"];
pub const OPERATIONS: [&str; 3] = ["sem_wait", "trylock", "tst"];

/// Table 1 as published, in KB: k1/magic, di/ei, lamport, system call.
const PUBLISHED_KB: &str =
    "3.18 (k1/magic), 0.33 (di/ei), 12.70 and 1.66 of a daemon (lamport), 0.57 (system call)";

/// Items a second of one method, for each crowd.
#[derive(Debug)]
pub struct Curve {
    pub name: &'static str,
    pub points: [Vec<f64>; CROWDS.len()],
}

impl Curve {
    pub fn new(name: &'static str) -> Self {
        Self { name, points: Default::default() }
    }

    /// The mean of a point, without its least and its greatest value, as in the paper.
    pub fn mean(&self, place: usize) -> Option<f64> {
        let mut sorted = self.points[place].clone();
        sorted.sort_by(f64::total_cmp);
        let inner = if sorted.len() > 2 { &sorted[1..sorted.len() - 1] } else { &sorted[..] };
        (!inner.is_empty()).then(|| inner.iter().sum::<f64>() / inner.len() as f64)
    }
}

/// All of it.
#[derive(Debug)]
pub struct Report {
    pub host: String,
    pub rounds: usize,
    pub runs: usize,
    /// Result lines of the small benches, all rounds.
    pub small: Vec<Value>,
    pub curves: Vec<Curve>,
    pub footprint: Vec<Footprint>,
    pub notes: Vec<String>,
}

impl Report {
    /// Nanoseconds of something in each round: the median of the run.
    fn ns(&self, bench: &str, name: &str) -> Vec<f64> {
        let wanted = |line: &&Value| line["bench"] == bench && line["name"] == name;
        let values = self.small.iter().filter(wanted);
        values.filter_map(|line| line["ns"]["median"].as_f64()).collect()
    }

    /// The ratio of two names, round by round.
    fn ratio(&self, bench: &str, name: &str, base: &str) -> Option<Spread> {
        let pairs = self.ns(bench, name).into_iter().zip(self.ns(bench, base));
        Spread::of(&pairs.map(|(ns, base)| ns / base).collect::<Vec<_>>())
    }

    /// Figure 12: how much faster than the system call.
    pub fn gain(&self, operation: &str, method: &str) -> Option<Spread> {
        let name = |method: &str| format!("{operation} {method}");
        self.ratio("operations", &name("system-call"), &name(method))
    }

    fn names(&self, bench: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for line in self.small.iter().filter(|line| line["bench"] == bench) {
            let name = line["name"].as_str().unwrap_or_default().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn curve(&self, name: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.name == name)
    }

    pub fn to_json(&self) -> Value {
        let curves = self.curves.iter().map(|curve| {
            let means: Vec<_> = (0..CROWDS.len()).map(|place| curve.mean(place)).collect();
            json!({ "name": curve.name, "items_per_s": means, "runs": curve.points })
        });
        let footprint = self.footprint.iter().map(
            |row| json!({ "method": row.method, "library": row.library, "support": row.support, "support_does": row.support_does }),
        );
        json!({ "host": self.host, "rounds": self.rounds, "small": self.small,
            "figure_13": { "crowds": CROWDS, "curves": curves.collect::<Vec<_>>() },
            "table_1_bytes": footprint.collect::<Vec<_>>(), "notes": self.notes })
    }

    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# Test-and-set without atomic instructions (paper 0)\n\n{}; {} rounds. Written by `bench/run --part locks`.\n",
            self.host, self.rounds
        );
        for note in &self.notes {
            put(&mut text, format_args!("\n- {note}"));
        }
        self.uncontended(&mut text);
        self.figure_12(&mut text);
        self.figure_13(&mut text);
        self.table_1(&mut text);
        table_2(&mut text);
        text
    }

    fn uncontended(&self, text: &mut String) {
        text.push_str(
            "\n\n## Acquire and release without contention\n\n| | ns | over xchg + store (least to greatest round) |\n|---|---|---|\n",
        );
        for name in self.names("uncontended") {
            let Some(ns) = Spread::of(&self.ns("uncontended", &name)) else { continue };
            let ratio =
                self.ratio("uncontended", &name, "xchg + store").map(shown).unwrap_or_default();
            put(text, format_args!("| {name} | {:.2} | {ratio} |\n", ns.median));
        }
        text.push_str("\n| mark | over | ratio | met |\n|---|---|---|---|\n");
        for (name, base, mark) in MARKS {
            let Some(ratio) = self.ratio("uncontended", name, base) else { continue };
            let met = if ratio.median <= mark { "yes" } else { "no" };
            put(
                text,
                format_args!("| {name} | {base} | {} of at most {mark} | {met} |\n", shown(ratio)),
            );
        }
        text.push_str("\nRevoking a bias:");
        for name in self.names("revocation") {
            let ns = Spread::of(&self.ns("revocation", &name)).map_or(0.0, |ns| ns.median);
            put(text, format_args!(" {name}, {:.2} µs;", ns / 1e3));
        }
        text.push('\n');
    }

    fn figure_12(&self, text: &mut String) {
        text.push_str(
            "\n## Figure 12: simple operations, how many times as fast as by a system call\n\nPublished: k1/magic and di/ei more than 7.\n\n| | sem_wait | trylock | tst |\n|---|---|---|---|\n",
        );
        for method in METHODS {
            let gains = OPERATIONS.map(|operation| {
                self.gain(operation, method)
                    .map_or("-".into(), |gain| format!("{:.1}", gain.median))
            });
            put(text, format_args!("| {method} | {} |\n", gains.join(" | ")));
        }
    }

    fn figure_13(&self, text: &mut String) {
        put(
            text,
            format_args!(
                "\n## Figure 13: producers and consumers, thousand items a second\n\nMeans of {} runs without the least and the greatest. Kernel threads on one CPU; microprocesses on one virtual processor and \
                 goroutines on one worker have a scheduler of their own.\n\n| | {} |\n|---|{}\n",
                self.runs,
                CROWDS.map(|crowd| format!("({crowd},{crowd})")).join(" | "),
                "---|".repeat(CROWDS.len())
            ),
        );
        for curve in &self.curves {
            let row: Vec<_> = (0..CROWDS.len())
                .map(|place| {
                    curve.mean(place).map_or("-".into(), |items| format!("{:.0}", items / 1e3))
                })
                .collect();
            put(text, format_args!("| {} | {} |\n", curve.name, row.join(" | ")));
        }
        for (name, base, mark) in [("rseq", "system-call", 1.9), ("microprocesses", "Go", 2.0)] {
            let (Some(ours), Some(theirs)) = (self.curve(name), self.curve(base)) else { continue };
            let ratios: Vec<_> = (0..CROWDS.len())
                .filter_map(|place| Some(ours.mean(place)? / theirs.mean(place)?))
                .collect();
            let met = !ratios.is_empty() && ratios.iter().all(|&ratio| ratio >= mark);
            let shown: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
            put(
                text,
                format_args!(
                    "\n{name} over {base}: {} (at least {mark} at all sizes: {}).\n",
                    shown.join(", "),
                    if met { "met" } else { "not met" }
                ),
            );
        }
    }

    fn table_1(&self, text: &mut String) {
        put(
            text,
            format_args!(
                "\n## Table 1: footprint, bytes of code\n\nFrom the symbols of a release build for this machine; published, in KB and for MIPS: {PUBLISHED_KB}. Support is the part of \
                 the preemption handler, the registration of a thread (without what lies in generic code of the standard library), or slots and the clean-up after dead participants (lamport; no daemon is needed).\n\n| | test-and-set | support | total |\n|---|---|---|---|\n"
            ),
        );
        for Footprint { method, library, support, .. } in &self.footprint {
            put(
                text,
                format_args!("| {method} | {library} | {support} | {} |\n", library + support),
            );
        }
    }
}

fn table_2(text: &mut String) {
    text.push_str(
        "\n## Table 2: features\n\n| | restartable | rseq | atomics | signals-blocked | lamport | system-call |\n|---|---|---|---|---|---|---|\n\
         | excludes | microprocesses of one virtual processor | threads of one CPU | all threads | handlers of one thread | all participants | all threads |\n\
         | a thread that never leaves can be preempted | yes | yes | yes | no: its signals are blocked | yes | yes |\n\
         | page fault in the middle | words must not fault | aborted by the kernel | - | continues | continues | continues |\n\
         | resources | a word of the virtual processor | an area for each thread, registered by the C library | none | none | a slot for each thread, reclaimed when the thread has ended | a word |\n\
         | a thread dies inside | nothing to clean up | nothing to clean up | the lock stays taken | nothing to clean up | a waiting thread finishes it | the section stays taken |\n",
    );
}

fn shown(spread: Spread) -> String {
    format!("{:.2} ({:.2} to {:.2})", spread.median, spread.least, spread.most)
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::Curve;

    #[test]
    fn the_mean_leaves_the_ends_out() {
        let mut curve = Curve::new("x");
        curve.points[0] = vec![100.0, 2.0, 4.0, 0.0];
        curve.points[1] = vec![5.0];
        assert_eq!([curve.mean(0), curve.mean(1), curve.mean(2)], [Some(3.0), Some(5.0), None]);
    }
}
