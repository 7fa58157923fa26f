//! Multi-level feedback as in 4.3BSD, below a band of fixed priorities (Paper 1, §3.6).
//!
//! ```text
//!   63 … 32   fixed: as FixedPriority
//!   31 …  0   time sharing: base - used / 8 - nice      computing lowers the level, waiting raises it
//! ```
//!
//! `used` is 4.3BSD's `p_cpu` (Leffler et al., §4.4): processor time in ticks of 10 ms, at most
//! 255. Once a second it is multiplied by 2 load / (2 load + 1), where the load is the number of
//! runnable microprocesses. The value of a sleeper is decayed when it wakes, for all the seconds it
//! slept. The priority belongs to the microprocess, whichever kernel thread carries it. The lack of
//! that causes the two failures of §3.6.
//!
//! 4.3BSD decays all values in one sweep a second. Here the sweep takes one level at each pick,
//! from the top down. An entry can only rise by it, so none is swept twice.

use super::{Arrival, Entry, Levels, Scheduler, Slice};
use crate::data::priority::Priority;

/// The band's highest level: [`Priority::NORMAL`].
const TOP: u8 = 31;
const TICK_NS: u64 = 10_000_000;
const USED_NS_MAX: u64 = 255 * TICK_NS;
/// Ticks used that lower the priority by one level.
const TICKS_PER_LEVEL: u64 = 8;
const SECOND_NS: u64 = 1_000_000_000;
/// After this many seconds asleep, no used time is left.
const DECAYS_MAX: u64 = 64;
/// The load is stored in sixteenths.
const LOAD_ONE: u64 = 16;

/// Indices of the words of an entry.
const USED_NS: usize = 0;
/// The second in which the entry was last decayed.
const DECAYED: usize = 1;

/// Feedback for priorities up to [`Priority::NORMAL`], fixed ones above.
///
/// The [parameter](Entry::parameter) is the `nice` value, in levels: 0 to 20.
#[derive(Debug)]
pub struct Feedback {
    levels: Levels,
    queued: u64,
    load: u64,
    /// The second for which the sweep runs, and the next level that it takes.
    second: u64,
    sweep: Option<u8>,
}

impl Default for Feedback {
    fn default() -> Self {
        Self::new()
    }
}

impl Feedback {
    /// A scheduler with no entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { levels: Levels::new(), queued: 0, load: LOAD_ONE, second: 0, sweep: None }
    }

    /// The level at which `entry` competes now: its priority, lowered by used time and `nice`.
    #[must_use]
    pub fn level_of(entry: Entry) -> u8 {
        let base = entry.priority().level();
        if base > TOP {
            return base;
        }
        let used = entry.word(USED_NS) / TICK_NS / TICKS_PER_LEVEL;
        let nice = entry.parameter().min(20);
        base.saturating_sub((used + nice) as u8)
    }

    /// Decays the used time of `entry`, once for every second since the last time.
    fn decay(&self, entry: Entry) {
        let seconds = self.second.saturating_sub(entry.word(DECAYED)).min(DECAYS_MAX);
        let mut used_ns = entry.word(USED_NS);
        for _ in 0..seconds {
            used_ns = used_ns * 2 * self.load / (2 * self.load + LOAD_ONE);
        }
        entry.set_word(USED_NS, used_ns);
        entry.set_word(DECAYED, self.second);
    }

    /// Updates second, sweep and load when a new second has begun.
    fn look_at(&mut self, now_ns: u64) {
        let second = now_ns / SECOND_NS;
        if second > self.second {
            self.second = second;
            // An unfinished sweep continues. Entries that it reaches later decay by more seconds at
            // once.
            self.sweep = self.sweep.or(Some(TOP));
            // Smoothed, and at least 1, for the running microprocess.
            self.load = ((self.load + (self.queued + 1) * LOAD_ONE) / 2).max(LOAD_ONE);
        }
    }

    /// Decays the entries of one level.
    fn sweep(&mut self) {
        let Some(level) = self.sweep else { return };
        self.sweep = level.checked_sub(1);
        let mut staying = super::List::new();
        while let Some(entry) = self.levels.pop_from(level) {
            self.decay(entry);
            match Self::level_of(entry) {
                risen if risen != level => self.levels.push_back(entry, risen),
                _ => staying.push_back(entry),
            }
        }
        while let Some(entry) = staying.pop_front() {
            self.levels.push_back(entry, level);
        }
    }
}

impl Scheduler for Feedback {
    fn name(&self) -> &'static str {
        "feedback"
    }

    fn enqueue(&mut self, entry: Entry, arrival: Arrival, now_ns: u64) {
        self.look_at(now_ns);
        if arrival == Arrival::Spawned {
            entry.set_word(DECAYED, self.second);
        }
        self.decay(entry);
        self.queued += 1;
        let level = Self::level_of(entry);
        if arrival == Arrival::Outranked {
            self.levels.push_front(entry, level);
        } else {
            self.levels.push_back(entry, level);
        }
    }

    fn pick(&mut self, now_ns: u64) -> Option<Entry> {
        self.look_at(now_ns);
        self.sweep();
        let picked = self.levels.pop()?;
        self.queued -= 1;
        Some(picked)
    }

    fn remove(&mut self, entry: Entry) {
        self.levels.remove(entry);
        self.queued -= 1;
    }

    fn best(&self) -> Option<Priority> {
        self.levels.highest().and_then(Priority::new)
    }

    fn preempts(&self, running: Entry, slice: Slice, _now_ns: u64) -> bool {
        let (best, level) = (self.levels.highest(), Some(Self::level_of(running)));
        match slice {
            Slice::Over => best >= level,
            Slice::Left => best > level,
        }
    }

    fn charge(&mut self, entry: Entry, ran_ns: u64, now_ns: u64) {
        self.look_at(now_ns);
        self.decay(entry);
        entry.set_word(USED_NS, (entry.word(USED_NS) + ran_ns).min(USED_NS_MAX));
    }
}
