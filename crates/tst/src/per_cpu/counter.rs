//! A counter without a cache line that threads on different CPUs share.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use super::{Mechanism, PerCpu};
use crate::contract::TestAndSet;

/// A number that many threads add to and few read; it wraps. An addition costs 2-3 ns and moves no
/// cache line between CPUs.
#[derive(Debug)]
pub struct PerCpuCounter(PerCpu<AtomicUsize>);

impl PerCpuCounter {
    /// Zero, with the best mechanism.
    #[must_use]
    pub fn new() -> Self {
        Self(PerCpu::new(|| AtomicUsize::new(0)))
    }

    /// Zero, with the given mechanism.
    ///
    /// # Errors
    /// The obstacle in this process, as text.
    pub fn with_mechanism(mechanism: Mechanism) -> Result<Self, String> {
        PerCpu::with_mechanism(mechanism, || AtomicUsize::new(0)).map(Self)
    }

    /// Adds `addend`, wrapping.
    #[inline]
    pub fn add(&self, addend: usize) {
        self.0.with(|method, word| method.fetch_add(word, addend));
    }

    /// The sum of all completed additions, and possibly of some concurrent ones. Reads every CPU's
    /// piece.
    #[must_use]
    pub fn sum(&self) -> usize {
        self.0.iter().fold(0, |sum, word| sum.wrapping_add(word.load(Ordering::Acquire)))
    }
}

impl Default for PerCpuCounter {
    fn default() -> Self {
        Self::new()
    }
}
