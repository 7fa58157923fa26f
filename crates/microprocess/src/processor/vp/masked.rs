//! What belongs to the holder of a virtual processor, and the proof that the caller is that holder.
//!
//! | token | proves | made by |
//! |---|---|---|
//! | [`Masked`] | the calling kernel thread holds the virtual processor, with events masked | sections ([`mask`](crate::schedule::mask)), guards, the base |
//! | [`ClaimedIdle`](super::ClaimedIdle) | the holder sleeps for want of work, and touches nothing until the token is dropped | one exchange of the attention word |
//!
//! [`Own`] is [behind](kyocho_sys::holder_only) a [`Masked`]: there is no other way to a run queue, to timers, to free slots. A
//! [`Home`](super::Home) changes at the word of either token. A token is the address of the virtual processor, so passing it costs what
//! passing that costs.
//!
//! **Invariant:** a token is not used after the section that it comes from was left or its microprocess suspended. Tokens of a
//! [`Section`](crate::schedule::Section) borrow it, and leaving or suspending consumes it; those of a guard last as long as its object.
#![expect(unsafe_code, reason = "tokens promise what the compiler cannot see")]

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;

use kyocho_sys::holder_only::Proof;

use super::Vp;
use crate::data::heap::{Heap, Sleeping};
use crate::processor::ready::ReadyQueue;
use crate::processor::record::Record;
use crate::processor::slot::FreeLists;

/// The holder's part of a virtual processor.
pub(crate) struct Own {
    /// What the base runs next: a switch to it needs more than a stack.
    pub(crate) chosen: Cell<Option<&'static Record>>,
    /// Over, but still on its stack when it came to the base.
    pub(crate) exiting: Cell<Option<&'static Record>>,
    /// Who ran when the processor was taken from a sleeping holder: the next holder tells the scheduler.
    pub(crate) blocked: Cell<Option<&'static Record>>,
    pub(crate) free: FreeLists,
    pub(super) next_id: Cell<u64>,
    /// Up to where leads are paid for, in switches: see [`Masked::may_lead`].
    pub(super) sleeper_leads: Cell<u64>,
    /// The same for those who slept in the kernel.
    pub(super) unblocked_leads: Cell<u64>,
    /// When objects that came from others were last looked at.
    pub(super) travelled_ns: Cell<u64>,
    /// Which virtual processor gets everybody who is here.
    pub(super) joins: Cell<Option<&'static Vp>>,
    pub(crate) queue: ReadyQueue,
    pub(crate) timers: Heap<Record, Sleeping>,
}

impl Own {
    pub(super) const fn new() -> Self {
        Self {
            chosen: Cell::new(None),
            exiting: Cell::new(None),
            blocked: Cell::new(None),
            free: FreeLists::new(),
            next_id: Cell::new(0),
            sleeper_leads: Cell::new(0),
            unblocked_leads: Cell::new(0),
            travelled_ns: Cell::new(0),
            joins: Cell::new(None),
            queue: ReadyQueue::new(),
            timers: Heap::new(),
        }
    }

    /// As it was at first, for the next run; ids go on. The queue has been cleared, and the free slots given back.
    pub(super) fn renew(&self) {
        self.chosen.set(None);
        self.exiting.set(None);
        self.blocked.set(None);
        self.joins.set(None);
        self.sleeper_leads.set(0);
        self.unblocked_leads.set(0);
        self.travelled_ns.set(0);
        self.timers.clear();
    }
}

/// Proof that the calling kernel thread holds a virtual processor, with events masked; dereferences to it.
#[derive(Clone, Copy)]
pub(crate) struct Masked<'section> {
    vp: &'static Vp,
    /// The section's, on the kernel thread that entered it.
    section: PhantomData<(&'section (), *const ())>,
}

// SAFETY: made by `assume` alone, whose callers promise it, and shown to its own virtual processor alone, by `own`.
unsafe impl Proof for Masked<'_> {}

impl core::fmt::Debug for Masked<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Masked").field(self.vp).finish()
    }
}

impl Deref for Masked<'_> {
    type Target = Vp;

    #[inline(always)]
    fn deref(&self) -> &Vp {
        self.vp
    }
}

impl<'section> Masked<'section> {
    /// # Safety
    /// While the token is used, the calling kernel thread holds `vp` with events masked, or nobody else touches `vp`: it has not begun,
    /// has stopped, or its holder sleeps behind a claim.
    #[inline(always)]
    pub(crate) const unsafe fn assume(vp: &'static Vp) -> Self {
        Self { vp, section: PhantomData }
    }

    /// The virtual processor, as everybody may see it.
    #[inline(always)]
    pub(crate) const fn vp(self) -> &'static Vp {
        self.vp
    }

    /// What is the holder's.
    #[inline(always)]
    pub(crate) const fn own(self) -> &'section Own {
        self.vp.own.get(&self)
    }

    #[inline(always)]
    pub(crate) const fn queue(self) -> &'section ReadyQueue {
        &self.own().queue
    }

    /// Whether `record` belongs to this virtual processor.
    #[inline(always)]
    pub(crate) fn is_home_of(self, record: &Record) -> bool {
        core::ptr::eq(record.home(), self.vp)
    }
}

#[cfg(test)]
mod tests {
    use super::Masked;
    use crate::processor::vp::ClaimedIdle;

    /// Implemented once for what stays on its thread, and twice for what may leave it, so that nobody could tell which is meant.
    trait StaysOnItsThread<A> {
        const HOLDS: bool = true;
    }

    struct MayLeave;

    impl<T: ?Sized> StaysOnItsThread<()> for T {}
    impl<T: ?Sized + Send> StaysOnItsThread<MayLeave> for T {}

    #[test]
    fn tokens_stay_on_the_kernel_thread_that_made_them() {
        // Does not compile otherwise.
        const { assert!(<Masked<'static> as StaysOnItsThread<_>>::HOLDS) };
        const { assert!(<ClaimedIdle as StaysOnItsThread<_>>::HOLDS) };
    }
}
