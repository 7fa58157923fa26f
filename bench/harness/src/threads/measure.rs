//! The rounds: each runs every workload once on every system.

use crate::progress::Progress;
use crate::threads::system::{Built, Outcome};
use crate::threads::workload::Workload;
use serde_json::Value;

/// Output of a system for a workload, round by round, or the reason why there is none.
#[derive(Debug, Clone)]
pub enum Series {
    /// One result line a round.
    Lines(Vec<Value>),
    /// The system cannot do this, by design.
    Unsupported(String),
    /// It failed in some round.
    Failed(String),
}

impl Series {
    /// Adds one run; no effect if an earlier one failed.
    fn extend_by(&mut self, run: impl FnOnce() -> Outcome) {
        let Self::Lines(lines) = self else { return };
        match run() {
            Outcome::Line(line) => lines.push(line),
            Outcome::Unsupported(why) => *self = Self::Unsupported(why),
            Outcome::Failed(why) => *self = Self::Failed(why),
        }
    }
}

/// Runs all; the result is indexed by workload, then by system.
///
/// A system that fails at a workload does not run it again, so a failure costs one run.
pub fn interleaved(systems: &[Built], workloads: &[Workload], rounds: usize) -> Vec<Vec<Series>> {
    let mut all = vec![vec![Series::Lines(Vec::new()); systems.len()]; workloads.len()];
    let mut progress = Progress::new(rounds * workloads.len() * systems.len());
    for round in 1..=rounds {
        for (work, row) in workloads.iter().zip(&mut all) {
            for (system, series) in systems.iter().zip(row) {
                progress.step(&format!("round {round}: {}, {}", work.title, system.system.title));
                series.extend_by(|| system.run(work));
            }
        }
    }
    all
}
