//! Round robin: microprocesses run in turn, whatever their priority.

use super::{Arrival, Entry, List, Scheduler, Slice};
use crate::data::priority::Priority;

/// One list. Each microprocess runs for a time slice, or until it waits or yields.
#[derive(Debug, Default)]
pub struct RoundRobin {
    list: List,
}

impl RoundRobin {
    /// A scheduler with no entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: List::new() }
    }
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round robin"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, _now_ns: u64) {
        if arrival == Arrival::Outranked {
            self.list.push_front(entry);
        } else {
            self.list.push_back(entry);
        }
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        self.list.pop_front()
    }

    fn remove(&mut self, entry: Entry) {
        self.list.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.list.first().map(Entry::priority)
    }

    fn preempts(&self, _running: Entry, slice: Slice, _now_ns: u64) -> bool {
        slice == Slice::Over && !self.list.is_empty()
    }
}
