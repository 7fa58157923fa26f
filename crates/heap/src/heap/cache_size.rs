//! How many cells a thread asks for at a time, by how fast it uses them (paper 4, §8).
//!
//! The paper fixes the size and proposes this as future work: a thread that conses much gets a
//! large cache and asks seldom; one that hardly conses strands few cells at a collection. The size
//! is the thread's rate, an exponentially weighted mean over its refills, times the interval at
//! which a refill is cheap enough.
//!
//! Pure: time is an argument.

/// The smallest cache the rule gives.
pub const CELLS_MIN: usize = 16;
/// The largest.
pub const CELLS_MAX: usize = 32 * 1024;
/// Between refills, unless a policy says otherwise. A refill costs one or two microseconds, message included; asking at this
/// interval makes that one or two percent.
pub const INTERVAL_NS: u64 = 100_000;
/// A rate older than this counts for less than half.
const MEMORY_NS: u64 = 1_000_000;
/// The least weight of a new sample: a growing thread reaches its size in a few refills, however
/// quickly they follow each other.
const WEIGHT_MIN: f64 = 0.25;

/// One thread's rate.
#[derive(Clone, Copy, Debug)]
pub struct CacheSize {
    cells_per_ns: f64,
    last_refill_ns: u64,
}

impl CacheSize {
    /// A thread that begins now and has used nothing.
    #[must_use]
    pub const fn new(now_ns: u64) -> Self {
        Self { cells_per_ns: 0.0, last_refill_ns: now_ns }
    }

    /// The cache is empty again at `now_ns`, after `used_cells` since the last time: how many cells
    /// to ask for, `CELLS_MIN..=CELLS_MAX`, so that they last for `interval_ns`.
    #[must_use]
    pub fn next(&mut self, now_ns: u64, used_cells: usize, interval_ns: u64) -> usize {
        // A clock's step back, or two refills within its resolution, count as one nanosecond.
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
