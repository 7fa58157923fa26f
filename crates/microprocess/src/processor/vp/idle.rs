//! Access to an idle virtual processor, for the holder of another one.
//!
//! Waking an idle holder takes a thousand times as long as a switch on a busy virtual processor. So
//! the holder of a busy one moves a parked microprocess to itself instead. For that it must use
//! data of the sleeping holder.

use core::marker::PhantomData;
use core::ptr;

use super::{Masked, Vp, attention};
use crate::processor::record::{Record, State};

/// A claim on an idle virtual processor. Its holder sleeps, and uses nothing of it before this is
/// dropped.
///
/// A claim does not keep the virtual processor idle: a thread that alerts it wakes the holder,
/// which then waits for the end of the claim.
pub(crate) struct ClaimedIdle {
    vp: &'static Vp,
    /// The claim is released by the kernel thread that made it, in the same section.
    not_send: PhantomData<*const ()>,
}

impl ClaimedIdle {
    /// Claims `vp` if its holder sleeps because it has no work. The caller holds another virtual
    /// processor, and suspends only after the release.
    pub(crate) fn of(vp: &'static Vp, _holder: Masked<'_>) -> Option<Self> {
        // The load comes first, so that a busy virtual processor loses no cache line to an exchange
        // that fails.
        let claimed = vp.is_idle() && attention::claim(&vp.attention);
        claimed.then_some(Self { vp, not_send: PhantomData })
    }

    /// The claimed virtual processor.
    pub(super) fn vp(&self) -> &'static Vp {
        self.vp
    }

    /// Whether `record` belongs to the claimed virtual processor, is parked there without a
    /// deadline, and has left its stack.
    ///
    /// A sleeping holder is on its base stack. So every parked microprocess of its virtual
    /// processor has left its stack, except one that is bound to a kernel thread.
    pub(crate) fn has_parked(&self, record: &'static Record) -> bool {
        ptr::eq(record.home(), self.vp)
            && record.state.get() == State::Parked
            && record.bound.get().is_none()
            && !record.timer.is_set()
    }

    /// Moves `record`, for which [`has_parked`](Self::has_parked) is true, to `vp`, and ends the
    /// claim.
    pub(crate) fn send(self, record: &'static Record, vp: Masked<'_>) {
        debug_assert!(self.has_parked(record), "only a microprocess parked here is moved");
        record.home.change(&self, vp.vp());
    }
}

impl Drop for ClaimedIdle {
    fn drop(&mut self) {
        attention::release(&self.vp.attention);
    }
}
