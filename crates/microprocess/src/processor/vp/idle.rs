//! Access to an idle virtual processor, for the holder of another one.
//!
//! Waking an idle holder takes a thousand times as long as a switch on a busy virtual processor. So the holder of a busy one
//! takes a parked microprocess over instead, if it may look at what is the sleeping holder's.

use core::marker::PhantomData;
use core::ptr;

use super::{Masked, Vp, attention};
use crate::processor::record::{Record, State};

/// A claim on an idle virtual processor: its holder sleeps, and touches nothing before this is dropped.
///
/// What it shows does not show that the processor stays idle: whoever alerts it wakes the holder, which then waits.
pub(crate) struct ClaimedIdle {
    vp: &'static Vp,
    /// The claim is released by the kernel thread that made it, in the section in which it did.
    not_send: PhantomData<*const ()>,
}

impl ClaimedIdle {
    /// Claims `vp` if its holder sleeps for want of work. The caller holds another one, and suspends only after the release.
    pub(crate) fn of(vp: &'static Vp, _holder: Masked<'_>) -> Option<Self> {
        // The load first: a busy processor loses no cache line to an exchange that fails.
        let claimed = vp.is_idle() && attention::claim(&vp.attention);
        claimed.then_some(Self { vp, not_send: PhantomData })
    }

    /// The claimed virtual processor.
    pub(super) fn vp(&self) -> &'static Vp {
        self.vp
    }

    /// Whether `record` belongs to the claimed processor, is parked there without a deadline, and has left its stack.
    ///
    /// A sleeping holder stands on the base, so whatever is parked at its processor has left its stack, but for what is bound
    /// to a kernel thread.
    pub(crate) fn has_parked(&self, record: &'static Record) -> bool {
        ptr::eq(record.home(), self.vp)
            && record.state.get() == State::Parked
            && record.bound.get().is_none()
            && !record.timer.is_set()
    }

    /// Gives `record`, which [`has_parked`](Self::has_parked) found here, to `vp`, and ends the claim.
    pub(crate) fn send(self, record: &'static Record, vp: Masked<'_>) {
        debug_assert!(self.has_parked(record), "only what is parked here is given away");
        record.home.change(&self, vp.vp());
    }
}

impl Drop for ClaimedIdle {
    fn drop(&mut self) {
        attention::release(&self.vp.attention);
    }
}
