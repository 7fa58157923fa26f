//! A counter that loses no addition.

use core::fmt;

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::contract::{Refusal, TestAndSet};

/// A number that many threads add to. It wraps.
pub struct Counter<M> {
    mechanism: M,
    value: AtomicUsize,
}

impl<M: TestAndSet> Counter<M> {
    /// A counter at zero.
    pub fn new(mechanism: M) -> Self {
        Self { mechanism, value: AtomicUsize::new(0) }
    }

    /// Adds `addend`. Returns the previous value.
    ///
    /// # Errors
    /// As for [`TestAndSet::test_and_set`].
    #[inline]
    pub fn add(&self, addend: usize) -> Result<usize, Refusal> {
        self.mechanism.fetch_add(&self.value, addend)
    }

    /// The current value. Any thread may call this.
    #[must_use]
    pub fn get(&self) -> usize {
        self.value.load(Ordering::Acquire)
    }
}

impl<M> fmt::Debug for Counter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.value).finish()
    }
}
