//! A free list without a cache line that threads on different CPUs share.
#![expect(unsafe_code, reason = "follows raw links")]

use core::ptr::NonNull;

use kyocho_arch::restartable::Link;

use super::{Mechanism, PerCpu};
use crate::atomics::Atomics;
use crate::list::Head;

/// Intrusive lists of reusable objects, one for each CPU. An object pushed on a CPU is popped
/// there, last in first out.
///
/// A CPU's list cannot be reached from another CPU: a caller that finds its CPU's list empty
/// creates a new object. If objects constantly flow from one CPU to another, use a
/// [`FreeList`](crate::FreeList).
#[derive(Debug)]
pub struct PerCpuList(PerCpu<Head>);

impl PerCpuList {
    /// Empty lists, with the best mechanism.
    #[must_use]
    pub fn new() -> Self {
        Self(PerCpu::new(Head::new))
    }

    /// Empty lists, with the given mechanism.
    ///
    /// # Errors
    /// The obstacle in this process, as text.
    pub fn with_mechanism(mechanism: Mechanism) -> Result<Self, String> {
        PerCpu::with_mechanism(mechanism, Head::new).map(Self)
    }

    /// Inserts a link at the front of this CPU's list.
    ///
    /// # Safety
    /// The link is in no list, and is valid until it is popped, which any thread may do.
    #[inline]
    pub unsafe fn push(&self, node: NonNull<Link>) {
        // SAFETY: the caller guarantees the link; a slot is used through one mechanism.
        self.0.with(|method, head| unsafe { head.push(&method, node) });
    }

    /// Removes the first link of this CPU's list; `None` if that list is empty.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<NonNull<Link>> {
        // SAFETY: as above.
        self.0.with(|method, head| unsafe { head.pop(&method) })
    }

    /// Removes all links of all CPUs, in no particular order.
    pub fn drain(&mut self) -> impl Iterator<Item = NonNull<Link>> {
        self.0.iter().flat_map(|head| {
            // SAFETY: the unique reference proves that no other thread uses any slot, so any
            // mechanism will do.
            core::iter::from_fn(|| unsafe { head.pop(&Atomics) }.ok().flatten())
        })
    }
}

impl Default for PerCpuList {
    fn default() -> Self {
        Self::new()
    }
}
