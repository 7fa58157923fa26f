//! Where a microprocess runs: its home, its pin, and messages to the holder of its home.

use core::ptr;

use kyocho_sys::prim::atomic::Ordering;

use super::{ANYWHERE, Record, State, remote};
use crate::inbox;
use crate::vp::Vp;

impl Record {
    /// Pins it to virtual processor `index`, or lets it run [`ANYWHERE`], from anywhere: as with levels.
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

    /// The virtual processor that it must go to: the one it is pinned to, if that runs; any that runs, if its home is retired.
    pub(crate) fn destination(&self) -> Option<&'static Vp> {
        let (pin, home) = (self.pin(), self.home());
        if pin == home.index || pin == ANYWHERE && !home.is_retired() {
            return if home.is_retired() { self.refuge(home) } else { None };
        }
        let pinned_to = home.shared().vp(pin);
        pinned_to.or_else(|| if home.is_retired() { self.refuge(home) } else { None })
    }

    /// The virtual processor for it while `home` is retired: the same at every look, and all of them about equally often.
    #[cold]
    fn refuge(&self, home: &Vp) -> Option<&'static Vp> {
        let shared = home.shared();
        shared.vp(self.id() as usize % shared.concurrency())
    }

    /// Sends it to `vp`, where it will be runnable. It stands in no queue, and its stack was left.
    pub(crate) fn send_to(&'static self, vp: &'static Vp) {
        self.home.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
        self.refresh_special();
        self.post(remote::ARRIVE);
    }

    /// Leaves a message for the holder of its home, from the holder of `vp`.
    ///
    /// If it is parked and its home idle, it moves to `vp` instead: waking an idle processor takes a thousand times as long as switching
    /// on a busy one. Who owns the `LINKED` bit alone decides about it then: its home is asleep, and its stack was left before that.
    pub(crate) fn post_from(&'static self, vp: &'static Vp, bits: u32) {
        if !inbox::ask(self, bits) {
            return;
        }
        let home = self.home();
        let may_move = !vp.is_foreign()
            && home.is_idle()
            && ptr::eq(home.shared(), vp.shared())
            && self.state.get() == State::Parked
            && self.bound.get().is_none()
            && !self.is_pinned()
            && !self.timer.is_set();
        if may_move {
            self.home.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
            vp.handle(self);
        } else {
            home.receive(self);
        }
    }

    /// Leaves a message for the holder of its home, from anywhere.
    pub(crate) fn post(&'static self, bits: u32) {
        if inbox::ask(self, bits) {
            self.home().receive(self);
        }
    }
}
