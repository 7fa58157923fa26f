//! The home of a microprocess, its pin, and messages to the holder of its home.

use kyocho_sys::prim::atomic::Ordering;

use super::{ANYWHERE, MicroprocessRef, Record, remote};
use crate::processor::vp::{ClaimedIdle, Masked, Vp};
use crate::protocol::inbox;

impl Record {
    /// Pins it to virtual processor `index`, or lets it run [`ANYWHERE`]. May be called by any
    /// thread. As with levels, the home must then be informed.
    pub(crate) fn pin_to(&self, index: usize) {
        self.pin.store(index, Ordering::Relaxed);
    }

    /// The virtual processor it is pinned to, or [`ANYWHERE`].
    pub(crate) fn pin(&self) -> usize {
        self.pin.load(Ordering::Relaxed)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.pin() != ANYWHERE
    }

    /// The virtual processor to which it must move, if any. That is the one it is pinned to, if not
    /// retired. If its home is retired, it is one that runs.
    pub(crate) fn destination(&self) -> Option<&'static Vp> {
        let (pin, home) = (self.pin(), self.home());
        if pin == home.index || pin == ANYWHERE && !home.is_retired() {
            return if home.is_retired() { self.refuge(home) } else { None };
        }
        let pinned_to = home.shared().vp(pin);
        pinned_to.or_else(|| if home.is_retired() { self.refuge(home) } else { None })
    }

    /// The virtual processor for it while `home` is retired. The choice depends on its id alone, so
    /// microprocesses spread evenly.
    #[cold]
    fn refuge(&self, home: &Vp) -> Option<&'static Vp> {
        let shared = home.shared();
        shared.vp(self.id() as usize % shared.concurrency())
    }

    /// Moves it from its home, which the caller holds, to `vp`, where it becomes runnable. It is
    /// suspended or has not begun, and is in no queue.
    pub(crate) fn send_to(&'static self, from: Masked<'_>, vp: &'static Vp) {
        self.home.change(&from, vp);
        self.refresh_special();
        self.post(remote::ARRIVE);
    }

    /// Leaves a message for the holder of its home. Call as the holder of `vp`, with events masked.
    ///
    /// If it is parked and its home idle, it moves to `vp` instead: see [`ClaimedIdle`]. While the
    /// caller has the link, no other poster moves it. The holder of its home could still wake it,
    /// by its timer or for another microprocess there, so the caller also claims the home.
    pub(crate) fn post_from(&'static self, vp: Masked<'_>, bits: u32) {
        let Some(link) = inbox::ask(self, bits) else { return };
        if self.moves_to(vp) {
            vp.handle(link);
        } else {
            self.home().receive(link);
        }
    }

    /// Moves it to `vp` if it is parked and its home is an idle virtual processor of the same
    /// runtime. Returns whether it moved.
    fn moves_to(&'static self, vp: Masked<'_>) -> bool {
        let home = self.home();
        if vp.is_foreign() || self.is_pinned() || !home.is_beside(&vp) {
            return false;
        }
        let Some(idle) = ClaimedIdle::of(home, vp) else { return false };
        let moves = idle.has_parked(self);
        if moves {
            idle.send(self, vp);
        }
        moves
    }

    /// Leaves a message for the holder of its home. May be called by any thread.
    pub(crate) fn post(&'static self, bits: u32) {
        if let Some(link) = inbox::ask(self, bits) {
            self.home().receive(link);
        }
    }
}

/// Makes a parked microprocess runnable that the caller, the holder of `vp`, removed from a wait
/// queue. Events are masked.
#[inline]
pub(crate) fn make_runnable_from(vp: Masked<'_>, target: MicroprocessRef) {
    let record = target.0;
    if vp.is_home_of(record) {
        vp.wake(record);
    } else {
        record.post_from(vp, remote::WAKE);
    }
}
