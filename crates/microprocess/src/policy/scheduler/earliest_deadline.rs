//! Earliest deadline first: the microprocess with the earliest deadline runs first.

use super::{Arrival, Entry, Heap, List, Scheduler, Slice};
use crate::data::priority::Priority;

/// Runs microprocesses by deadline, which is the [parameter](Entry::parameter): nanoseconds of
/// [`Deadline::ns`](crate::Deadline::ns). Microprocesses without a deadline (0) take turns when
/// none with a deadline is runnable.
///
/// No microprocess is refused: if there is more work than time, deadlines are missed.
#[derive(Debug, Default)]
pub struct EarliestDeadline {
    urgent: Heap,
    others: List,
}

impl EarliestDeadline {
    /// A scheduler with no entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { urgent: Heap::new(), others: List::new() }
    }
}

/// The deadline of `entry`, if it has one.
fn deadline_ns(entry: Entry) -> Option<u64> {
    Some(entry.parameter()).filter(|&ns| ns != 0)
}

impl Scheduler for EarliestDeadline {
    fn name(&self) -> &'static str {
        "earliest deadline first"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, _now_ns: u64) {
        // Word 0 says which queue holds the entry, even if its deadline changes later: 1 is the
        // heap.
        entry.set_word(0, u64::from(deadline_ns(entry).is_some()));
        match (deadline_ns(entry), arrival) {
            (Some(ns), _) => self.urgent.push(entry, ns),
            (None, Arrival::Outranked) => self.others.push_front(entry),
            (None, _) => self.others.push_back(entry),
        }
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        self.urgent.pop().or_else(|| self.others.pop_front())
    }

    fn remove(&mut self, entry: Entry) {
        if entry.word(0) == 1 {
            self.urgent.remove(entry);
        } else {
            self.others.remove(entry);
        }
    }

    fn best(&self) -> Option<Priority> {
        self.urgent.first().or(self.others.first()).map(Entry::priority)
    }

    fn preempts(&self, running: Entry, slice: Slice, _now_ns: u64) -> bool {
        match (self.urgent.least(), deadline_ns(running)) {
            (Some(waits), Some(runs)) => waits < runs,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => slice == Slice::Over && !self.others.is_empty(),
        }
    }
}
