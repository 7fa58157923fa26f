//! The size of a thread's cell cache, by its allocation rate (paper 4, §8).
//!
//! The paper fixes the size and proposes an adaptive one as future work. A thread that allocates
//! much gets a large cache, and requests seldom. A thread that allocates little leaves few cells
//! unused at a collection. The size is the thread's rate multiplied by the interval at which
//! refills are cheap enough. The rate is an exponentially weighted mean over its refills.
//!
//! Pure: time is an argument.

/// The smallest size.
pub const CELLS_MIN: usize = 16;
/// The largest size.
pub const CELLS_MAX: usize = 32 * 1024;
/// Time between refills unless a policy sets another. A refill costs one or two microseconds,
/// message included. So refills at this interval cost one or two percent.
pub const INTERVAL_NS: u64 = 100_000;
/// A rate older than this has less than half of the weight.
const MEMORY_NS: u64 = 1_000_000;
/// Least weight of a new sample. A thread whose rate grows reaches its size within a few refills,
/// however quickly they follow each other.
const WEIGHT_MIN: f64 = 0.25;

/// One thread's rate.
#[derive(Clone, Copy, Debug)]
pub struct CacheSize {
    cells_per_ns: f64,
    last_refill_ns: u64,
}

impl CacheSize {
    /// The state for a thread that starts now.
    #[must_use]
    pub const fn new(now_ns: u64) -> Self {
        Self { cells_per_ns: 0.0, last_refill_ns: now_ns }
    }

    /// Call when the cache is empty again at `now_ns`, after `used_cells` since the last call.
    /// Returns how many cells to request so that they last for `interval_ns`:
    /// `CELLS_MIN..=CELLS_MAX`.
    #[must_use]
    pub fn next(&mut self, now_ns: u64, used_cells: usize, interval_ns: u64) -> usize {
        // If the clock steps back, or two refills fall within its resolution, one nanosecond is
        // assumed.
        let elapsed_ns = now_ns.saturating_sub(self.last_refill_ns).max(1);
        self.last_refill_ns = self.last_refill_ns.max(now_ns);
        let sample = used_cells as f64 / elapsed_ns as f64;
        let age = elapsed_ns as f64 / (elapsed_ns as f64 + MEMORY_NS as f64);
        self.cells_per_ns += (sample - self.cells_per_ns) * age.max(WEIGHT_MIN);
        ((self.cells_per_ns * interval_ns as f64) as usize).clamp(CELLS_MIN, CELLS_MAX)
    }
}

#[cfg(test)]
mod tests;
