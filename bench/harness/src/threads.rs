//! Threads: Kyocho beside its peers.
//!
//! One round runs each workload once on each system, so that other load of the machine affects all
//! of them; a ratio to Go is taken within a round, and its spread is over the rounds.

mod measure;
mod plot;
mod report;
pub mod system;
mod table;
pub mod workload;

use crate::{Options, Part};
use report::Report;

/// Runs the workloads; the report's files are `threads.*` and `semaphores.svg`.
///
/// # Errors
/// A name is not that of a workload or system; a plot cannot be drawn.
pub fn run(options: &Options) -> Result<Part, String> {
    let systems = system::chosen(&options.peers)?;
    let workloads = workload::chosen(&options.only, options.quick)?;
    let (built, skipped) = system::build_all(&systems, &options.build_into());
    let series = measure::interleaved(&built, &workloads, options.rounds());
    let report =
        Report::new(&built, &workloads, series, options.rounds(), skipped, options.host.clone());
    let draw = |drawn: Result<String, Box<dyn core::error::Error>>| {
        drawn.map_err(|failure| format!("cannot draw: {failure}"))
    };
    Ok(Part {
        name: "threads",
        json: report.to_json(),
        markdown: table::markdown(&report),
        plots: vec![
            ("threads.svg", draw(plot::ratios(&report))?),
            ("semaphores.svg", draw(plot::semaphores(&report))?),
        ],
    })
}
