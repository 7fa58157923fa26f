//! The data that belongs to the holder of a virtual processor, and the proof that the caller is the
//! holder.
//!
//! | token | proves | made by |
//! |---|---|---|
//! | [`Masked`] | the calling kernel thread holds the virtual processor, with events masked | sections ([`mask`](crate::schedule::mask)), guards, the base |
//! | [`ClaimedIdle`](super::ClaimedIdle) | the holder sleeps because it has no work, and uses nothing until the token is dropped | one exchange of the attention word |
//!
//! [`Own`] is [reached](kyocho_sys::holder_only) only through a [`Masked`]. There is no other way
//! to a run queue, to timers or to free slots. Either token allows a [`Home`](super::Home) to
//! change. A token is just the address of the virtual processor, so passing it costs no more.
//!
//! **Invariant:** a token is not used after its section was left or its microprocess suspended.
//! Tokens of a [`Section`](crate::schedule::Section) borrow it, and leaving or suspending consumes
//! it. Tokens of a guard last as long as its object.
#![expect(unsafe_code, reason = "tokens are promises that the compiler cannot check")]

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Deref;

use kyocho_sys::holder_only::Proof;

use super::Vp;
use crate::data::heap::{Heap, Sleeping};
use crate::processor::ready::ReadyQueue;
use crate::processor::record::Record;
use crate::processor::slot::FreeLists;

/// The data of a virtual processor that only its holder uses.
pub(crate) struct Own {
    /// What the base runs next, if switching to it takes more than a switch of stacks.
    pub(crate) chosen: Cell<Option<&'static Record>>,
    /// A microprocess that has ended, but was still on its stack when it switched to the base.
    pub(crate) exiting: Cell<Option<&'static Record>>,
    /// The microprocess that ran when the virtual processor was taken from a sleeping holder. The
    /// next holder reports it to the scheduler.
    pub(crate) blocked: Cell<Option<&'static Record>>,
    pub(crate) free: FreeLists,
    pub(super) next_id: Cell<u64>,
    /// Up to which switch leads are paid for: see [`Masked::may_lead`].
    pub(super) sleeper_leads: Cell<u64>,
    /// The same, for microprocesses that slept in the kernel.
    pub(super) unblocked_leads: Cell<u64>,
    /// When the travels of objects were last evaluated.
    pub(super) travelled_ns: Cell<u64>,
    /// The virtual processor to which all microprocesses here are to move.
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

    /// Resets the data for the next run, except the next id. The queue has been cleared, and the
    /// free slots given back.
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

/// Proof that the calling kernel thread holds a virtual processor, with events masked; dereferences
/// to it.
#[derive(Clone, Copy)]
pub(crate) struct Masked<'section> {
    vp: &'static Vp,
    /// Lives as long as the section, on the kernel thread that entered it.
    section: PhantomData<(&'section (), *const ())>,
}

// SAFETY: made only by `assume`, whose callers promise it, and passed only to its own virtual
// processor, by `own`.
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
    /// While the token is used, the calling kernel thread holds `vp` with events masked, or no
    /// other thread uses `vp`: it has not begun, has stopped, or its holder sleeps behind a claim.
    #[inline(always)]
    pub(crate) const unsafe fn assume(vp: &'static Vp) -> Self {
        Self { vp, section: PhantomData }
    }

    /// The virtual processor, as any thread may see it.
    #[inline(always)]
    pub(crate) const fn vp(self) -> &'static Vp {
        self.vp
    }

    /// The data of the holder.
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

    /// Implemented once for types that stay on their thread, and twice for types that may leave it.
    /// For the latter, the call is ambiguous and does not compile.
    trait StaysOnItsThread<A> {
        const HOLDS: bool = true;
    }

    struct MayLeave;

    impl<T: ?Sized> StaysOnItsThread<()> for T {}
    impl<T: ?Sized + Send> StaysOnItsThread<MayLeave> for T {}

    #[test]
    fn tokens_stay_on_the_kernel_thread_that_made_them() {
        // Otherwise this does not compile.
        const { assert!(<Masked<'static> as StaysOnItsThread<_>>::HOLDS) };
        const { assert!(<ClaimedIdle as StaysOnItsThread<_>>::HOLDS) };
    }
}
