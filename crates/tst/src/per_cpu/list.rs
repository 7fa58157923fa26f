//! A free list that threads on different CPUs never share.
#![expect(unsafe_code, reason = "follows raw links")]

use core::ptr::NonNull;

use kyocho_arch::restartable::Link;

use super::{Kept, PerCpu};
use crate::list::Head;

/// Intrusive lists of what may be used again, one a CPU: what is pushed on a CPU is popped there, most recent first.
///
/// There is no way into another CPU's list: who finds this one's empty makes a new node. What flows from CPU to CPU all the time belongs
/// into a [`FreeList`](crate::FreeList).
#[derive(Debug)]
pub struct PerCpuList(PerCpu<Head>);

impl PerCpuList {
    /// Empty lists, kept in the best way.
    #[must_use]
    pub fn new() -> Self {
        Self(PerCpu::new(Head::new))
    }

    /// Empty lists, kept as asked.
    ///
    /// # Errors
    /// Why this process cannot, in words.
    pub fn kept(kept: Kept) -> Result<Self, String> {
        PerCpu::kept(kept, Head::new).map(Self)
    }

    /// Puts a link in front of this CPU's list.
    ///
    /// # Safety
    /// The link is valid until it is popped, by whatever thread, and in no list.
    #[inline]
    pub unsafe fn push(&self, node: NonNull<Link>) {
        // SAFETY: the caller's promise; a slot is kept by one method.
        self.0.with(|method, head| unsafe { head.push(&method, node) });
    }

    /// Takes the link in front of this CPU's list; `None` if there is none.
    #[inline]
    #[must_use]
    pub fn pop(&self) -> Option<NonNull<Link>> {
        // SAFETY: as above.
        self.0.with(|method, head| unsafe { head.pop(&method) })
    }

    /// Takes all links of all CPUs, in no order: for whoever ends the use of the lists.
    pub fn drain(&mut self) -> impl Iterator<Item = NonNull<Link>> {
        self.0.iter().flat_map(|head| {
            // SAFETY: a unique reference: nobody else is at any slot, whatever keeps it.
            core::iter::from_fn(|| unsafe { head.pop(&crate::Atomics) }.ok().flatten())
        })
    }
}

impl Default for PerCpuList {
    fn default() -> Self {
        Self::new()
    }
}
