//! Counters of system calls by transport: by message, from a cache, or in the caller's own step
//! (paper 4, §3.1.1 and §5).
//!
//! There is a set of counters for each CPU. Counting costs some nanoseconds, and moves no cache
//! line between threads.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use kyocho_tst::{PerCpu, TestAndSet};
use kyocho_vm::machine::control;

/// What is counted besides control procedures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counted {
    /// Requests for cells. The system-call thread determines whether they are served by message or
    /// by the caller.
    Refills,
    /// Cells received. Each one except the first of a refill comes from a cache.
    Cells,
    /// Raw calls of the host, outside Lisp.
    Host,
}

const COUNTED: usize = 3;

/// The counters of one system.
#[derive(Debug)]
pub(crate) struct Calls {
    counts: PerCpu<Box<[AtomicUsize]>>,
    /// How many policies and tools need the running time of every thread.
    measures: AtomicUsize,
}

impl Default for Calls {
    fn default() -> Self {
        let numbers = COUNTED + control::procedures().count();
        let piece = || (0..numbers).map(|_| AtomicUsize::new(0)).collect();
        Self { counts: PerCpu::new(piece), measures: AtomicUsize::new(0) }
    }
}

impl Calls {
    fn add(&self, number: usize, count: usize) {
        self.counts.with(|method, counts| method.fetch_add(&counts[number], count));
    }

    /// Adds to a counter.
    pub(crate) fn count(&self, what: Counted, count: usize) {
        self.add(what as usize, count);
    }

    /// Counts a call of a control procedure.
    pub(crate) fn count_procedure(&self, number: usize) {
        self.add(COUNTED + number, 1);
    }

    /// The sum over all CPUs.
    fn sum(&self, number: usize) -> usize {
        self.counts
            .iter()
            .fold(0, |sum, counts| sum.wrapping_add(counts[number].load(Ordering::Relaxed)))
    }

    /// How often this was counted.
    pub(crate) fn counted(&self, what: Counted) -> usize {
        self.sum(what as usize)
    }

    /// The number of calls of a control procedure.
    pub(crate) fn calls_of(&self, number: usize) -> usize {
        self.sum(COUNTED + number)
    }

    /// Adds or removes a user of the running times.
    pub(crate) fn measure(&self, more: bool) {
        if more {
            self.measures.fetch_add(1, Ordering::Relaxed);
        } else {
            self.measures.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether the running time of each thread is needed.
    pub(crate) fn are_measured(&self) -> bool {
        self.measures.load(Ordering::Relaxed) > 0
    }
}
