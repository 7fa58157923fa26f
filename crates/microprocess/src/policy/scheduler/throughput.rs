//! Throughput: each virtual processor runs its newest microprocesses first, and idle ones steal the
//! oldest.
//!
//! ```text
//!   front   newest ◄── spawned, woken: their data is in the cache
//!     │                                                            owner takes here
//!     ▼
//!   back    oldest ◄── yielded, preempted                          thieves get these: the most work behind each
//! ```
//!
//! Stealing is by request (private deques: Acar, Charguéraud and Rainey, 2013): an idle virtual
//! processor asks a busy one. At its next scheduling point, that one gives away half of its waiting
//! microprocesses. So the queue needs no lock and no atomic instruction.

use super::{Arrival, Demand, Entry, List, Scheduler, Slice};
use crate::data::priority::Priority;

/// One turn in this many runs the oldest, which might wait for ever otherwise.
const TURNS_PER_OLDEST: u32 = 61;

/// Does as much work as possible, in no promised order. Ignores priorities.
#[derive(Debug, Default)]
pub struct Throughput {
    list: List,
    turns: u32,
}

impl Throughput {
    /// A scheduler with no entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: List::new(), turns: 0 }
    }
}

impl Scheduler for Throughput {
    fn name(&self) -> &'static str {
        "throughput"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, _now_ns: u64) {
        match arrival {
            Arrival::Spawned | Arrival::Woken | Arrival::Outranked => self.list.push_front(entry),
            _ => self.list.push_back(entry),
        }
    }

    fn pick(&mut self, _now_ns: u64) -> Option<Entry> {
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(TURNS_PER_OLDEST) {
            self.list.pop_back()
        } else {
            self.list.pop_front()
        }
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

    fn surplus(&self, demand: Demand) -> usize {
        if demand.idle == 0 { 0 } else { demand.runnable.div_ceil(2) }
    }

    fn give(&mut self, _now_ns: u64) -> Option<Entry> {
        // Pinned entries collect at the front.
        let oldest = self.list.pop_back()?;
        if oldest.is_pinned() {
            self.list.push_front(oldest);
            return None;
        }
        Some(oldest)
    }

    fn seeks_work(&self) -> bool {
        true
    }
}
