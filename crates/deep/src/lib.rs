//! The paper's experiment: a deep-binding a-list evaluator in which each cell can cost a system
//! call.
//!
//! ```text
//!  program's microprocess                     system-call microprocess
//!  eval ... cons: cache empty
//!     |------------- request n cells ------------->|
//!     |  (parked)                                  | takes them from the shared heap
//!     |<------------ done / out of memory ---------|  (parked)
//!  cons from the cache, n times
//! ```
//!
//! A compiler with lexical addressing allocates nothing in `(ack 3 3)`. A Lisp that binds on
//! a-lists takes cells in nearly every step, so the cost of a cell dominates the cost of a program
//! (paper 4, §5). This engine exists beside the machine to repeat table 1 and figures 3 and 4.
//!
//! It implements a subset of Scheme: quote, lambda, if, cond, let (also named), let*, letrec,
//! define, set!, begin, and, or. Its data are integers of 61 bits, lists, and strings for output.
//! It collects at its own safepoints. Its frames are on a stack of its own, so
//! [`Options::frames_max`] bounds recursion, not the microprocess's stack.
//!
//! **Absent on purpose:** the compiler, the machine, threads, sessions. This engine uses the reader
//! and the heap of the Lisp Server.

mod atoms;
mod error;
mod evaluator;
mod service;
mod supply;

pub use error::{Cause, Failure};
pub use supply::SystemCallStatistics;

use evaluator::Evaluator;
use kyocho_heap::heap::{CellCache, Heap, Limits};
use kyocho_microprocess::Runtime;
use kyocho_syntax::datum::{Datum, Span};
use kyocho_syntax::reader::read_all;
use service::SystemCallThread;
use std::io::Write;
use std::sync::Arc;
use supply::Supply;

/// How to run a program.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many cells a message requests.
    pub cell_cache: CellCache,
    /// The heap.
    pub heap: Limits,
    /// Maximum number of frames of the evaluator.
    pub frames_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        // The paper's cells were all in memory, and its programs ran without a collection. Only the
        // requests for cells are measured.
        let heap = Limits { resident_bytes: 16 << 20, ..Limits::default() };
        Self { cell_cache: CellCache::Auto, heap, frames_max: 1_000_000 }
    }
}

/// The result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The last form's value as `write` shows it, or why the program stopped.
    pub value: Result<String, Failure>,
    /// The cost of its cells.
    pub statistics: SystemCallStatistics,
}

/// Runs a program on a virtual processor of its own, because the paper's machine had one processor.
/// `name` appears in messages. Blocks the calling kernel thread until the program has ended.
///
/// # Errors
/// The text cannot be read, there is no memory to start with, or a microprocess fails
/// ([`Cause::Runtime`]). An error of the running program is part of its [`Outcome`], beside its
/// cost.
pub fn run(
    source: &str,
    name: &str,
    options: &Options,
    output: &mut (dyn Write + Send),
) -> Result<Outcome, Failure> {
    let data = read_all(source, name).map_err(|error| Failure {
        cause: Cause::Syntax(error.message().into()),
        span: error.span(),
    })?;
    let runtime = Runtime::builder().virtual_processors(1).build();
    let outcome = runtime.run(|| run_data(&data, options, output));
    outcome
        .unwrap_or_else(|deadlock| Err(Cause::Runtime(deadlock.to_string())))
        .map_err(|cause| Failure { cause, span: Span::default() })
}

fn run_data(
    data: &[Datum],
    options: &Options,
    output: &mut (dyn Write + Send),
) -> Result<Outcome, Cause> {
    let no_start = |error: std::io::Error| Cause::Runtime(format!("cannot start: {error}"));
    let heap = Heap::new(options.heap).map_err(no_start)?;
    let cells = heap.cells(None);
    let thread = SystemCallThread::start(&heap, &cells).map_err(no_start)?;
    let supply = Supply::new(options.cell_cache, Box::new(thread.exchange()));
    let outcome = run_with(heap, cells, supply, data, options, output);
    if !thread.end() {
        return Err(Cause::Runtime("the system-call thread failed".into()));
    }
    outcome
}

/// Evaluates the forms. Cells come from `cells`; `supply` refills it when it is empty.
fn run_with(
    heap: Arc<Heap>,
    cells: kyocho_heap::heap::Cells,
    supply: Supply,
    data: &[Datum],
    options: &Options,
    output: &mut (dyn Write + Send),
) -> Result<Outcome, Cause> {
    let mut evaluator = Evaluator::new(heap, cells, supply, options.frames_max, output)?;
    evaluator.load(data)?;
    evaluator.supply.start();
    let mut shown = String::new();
    for (index, datum) in data.iter().enumerate() {
        match evaluator.run(index) {
            Ok(value) => shown = atoms::show(value, true),
            Err(cause) => {
                let value = Err(Failure { cause: *cause, span: datum.span });
                return Ok(Outcome { value, statistics: evaluator.supply.statistics() });
            }
        }
    }
    Ok(Outcome { value: Ok(shown), statistics: evaluator.supply.statistics() })
}

#[cfg(test)]
mod tests;
