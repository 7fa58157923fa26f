//! Fixed priorities: the most urgent first; equal ones first come, first served. The built-in
//! scheduler does the same.

use super::{Arrival, Entry, Levels, Scheduler, Slice};
use crate::data::priority::Priority;

/// One list for each priority.
#[derive(Debug, Default)]
pub struct FixedPriority {
    levels: Levels,
}

impl FixedPriority {
    /// A scheduler with no entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { levels: Levels::new() }
    }
}

impl Scheduler for FixedPriority {
    fn name(&self) -> &'static str {
        "fixed priority"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, _now_ns: u64) {
        let level = entry.priority().level();
        if arrival == Arrival::Outranked {
            self.levels.push_front(entry, level);
        } else {
            self.levels.push_back(entry, level);
        }
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        self.levels.pop()
    }

    fn remove(&mut self, entry: Entry) {
        self.levels.remove(entry);
    }

    fn best(&self) -> Option<Priority> {
        self.levels.highest().and_then(Priority::new)
    }

    fn preempts(&self, running: Entry, slice: Slice, _now_ns: u64) -> bool {
        let best = self.best();
        match slice {
            Slice::Over => best >= Some(running.priority()),
            Slice::Left => best > Some(running.priority()),
        }
    }
}
