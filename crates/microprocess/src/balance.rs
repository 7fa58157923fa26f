//! How many runnable microprocesses a busy virtual processor gives to idle ones: the pure part of sharing.
//!
//! The busy one gives, so that its queues need no lock. It is careful: two microprocesses that take turns on one
//! virtual processor switch in some 10 ns, on two in some 10 µs.

use crate::scheduler::Slice;

/// Most that are counted, and twice the most that are given at a time.
pub(crate) const COUNTED_MAX: usize = 64;

/// How many of `runnable` waiting microprocesses to give, to `idle` virtual processors.
///
/// What runs has kept the virtual processor for a whole time slice, or it switches.
pub(crate) fn share(runnable: usize, idle: usize, slice: Slice) -> usize {
    let runnable = runnable.min(COUNTED_MAX);
    match (slice, idle) {
        (_, 0) => 0,
        // Whoever waits behind a long one gains.
        (Slice::Over, _) => runnable.div_ceil(2).max(runnable.min(idle)),
        // One that waits while another runs may be half of a pair.
        (Slice::Left, _) if runnable < 2 => 0,
        // Even shares of those who wait and the one who runs; it stays.
        (Slice::Left, _) => (runnable + 1) * idle / (idle + 1),
    }
    .min(runnable)
}

#[cfg(test)]
mod tests;
