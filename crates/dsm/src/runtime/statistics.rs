//! Counters of a node.

use core::time::Duration;

use crate::interface::Call;
use crate::transport::Traffic;

/// What one node has done and waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Messages and bytes.
    pub traffic: Traffic,
    /// Accesses that waited for a page.
    pub read_faults: u64,
    /// Writes that were traps.
    pub write_faults: u64,
    /// Pages compared with their copies.
    pub pages_compared: u64,
    /// Words that had been written.
    pub words_written: u64,
    /// Time spent in write traps.
    pub noting: Duration,
    /// Time spent finding written words.
    pub comparing: Duration,
    /// Time spent waiting for pages.
    pub fetching: Duration,
    /// Calls that acquired a lock, failed to, or waited on a condition.
    pub locks: u64,
    /// Time spent in them.
    pub locking: Duration,
    /// Barriers crossed.
    pub barriers: u64,
    /// Time spent waiting at barriers.
    pub at_barriers: Duration,
}

impl Statistics {
    /// Counts a call that waited for this time.
    pub(super) fn waited(&mut self, call: Call, time: Duration) {
        match call {
            Call::Acquire(..) | Call::WaitOn(..) => {
                self.locks += 1;
                self.locking += time;
            }
            Call::Barrier(_) | Call::Region(..) => {
                self.barriers += 1;
                self.at_barriers += time;
            }
            Call::Fetch(_) => self.fetching += time,
            Call::Release(_) | Call::Publish(_) | Call::Signal(..) | Call::Move(_) => {}
        }
    }

    /// All counters by name, times in nanoseconds.
    #[must_use]
    pub fn figures(&self) -> [(&'static str, u64); 15] {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        [
            ("messages_sent", self.traffic.messages_sent),
            ("bytes_sent", self.traffic.bytes_sent),
            ("messages_received", self.traffic.messages_received),
            ("bytes_received", self.traffic.bytes_received),
            ("read_faults", self.read_faults),
            ("write_faults", self.write_faults),
            ("pages_compared", self.pages_compared),
            ("words_written", self.words_written),
            ("noting_ns", ns(self.noting)),
            ("comparing_ns", ns(self.comparing)),
            ("fetching_ns", ns(self.fetching)),
            ("locks", self.locks),
            ("locking_ns", ns(self.locking)),
            ("barriers", self.barriers),
            ("at_barriers_ns", ns(self.at_barriers)),
        ]
    }

    /// Time spent detecting writes: in traps, and comparing pages.
    #[must_use]
    pub fn detecting(&self) -> Duration {
        self.noting + self.comparing
    }
}
