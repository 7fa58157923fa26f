//! Migration of microprocesses between virtual processors: see [`balance`]. `Masked` functions are
//! called by the holder.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;

use super::{Masked, Vp, attention};
use crate::processor::balance::{self, COUNTED_MAX, TRAVELS};
use crate::processor::record::Record;
use crate::processor::scheduler::Runs;

impl Vp {
    /// Whether a microprocess began to wait here since the monitor's last check.
    pub(crate) fn has_offered(&self) -> bool {
        self.offered.load(Ordering::Relaxed)
    }

    /// Sets whether the monitor is to check for a microprocess that waits here.
    pub(crate) fn set_offered(&self, waits: bool) {
        self.offered.store(waits, Ordering::Relaxed);
    }

    /// Sets whether this virtual processor may call the monitor. If not, the monitor checks at its
    /// own time.
    pub(crate) fn let_offer(&self, may: bool) {
        let others = self.shared().vps().len() > 1;
        self.offers.store(others && may, Ordering::Relaxed);
    }
}

impl Masked<'_> {
    /// `record` became runnable here. If the running microprocess is less urgent, it gives way when
    /// the holder unmasks events. While other virtual processors are idle, the monitor is asked
    /// whether one should be woken.
    #[inline]
    pub(crate) fn contend(self, record: &'static Record) {
        let Some(running) = self.current.get() else { return };
        if record.level() > running.level() || self.queue().has_user() {
            self.attention.fetch_or(attention::RECONSIDER, Ordering::Relaxed);
        }
        if self.offers.load(Ordering::Relaxed) {
            self.offer_to_idle();
        } else {
            self.set_offered(true);
        }
    }

    #[cold]
    fn offer_to_idle(self) {
        if self.shared().idle.load(Ordering::Relaxed) != 0 {
            self.offers.store(false, Ordering::Relaxed);
            self.set_offered(true);
            self.shared().monitor.poke();
        }
    }

    /// Called when the holder enters an object whose last user was virtual processor `from`. If
    /// this happens often, the microprocesses that share objects are to be together. The virtual
    /// processor with the higher index then gives all of its own to the other.
    #[inline]
    pub(crate) fn note_travel(self, from: usize) {
        let travels = self.counters.travels.bump();
        if from < self.index && travels.is_multiple_of(TRAVELS) {
            self.weigh_travels(from);
        }
    }

    #[cold]
    fn weigh_travels(self, from: usize) {
        let now_ns = monotonic_ns();
        let took_ns = now_ns - self.own().travelled_ns.replace(now_ns);
        if balance::travels_too_much(took_ns) && !self.queue().has_user() {
            self.join_now(from);
        }
    }

    /// Makes all microprocesses here that may move go to virtual processor `index`, if that runs,
    /// at the next scheduling point.
    pub(crate) fn join_now(self, index: usize) {
        if let Some(other) = self.shared().vp(index) {
            self.own().joins.set(Some(other));
            self.attention.fetch_or(attention::GATHER, Ordering::Relaxed);
        }
    }

    /// Gives all microprocesses that may move to the virtual processor that this one joins, if it
    /// joins one. Call on the base.
    pub(crate) fn gather(self) {
        let Some(other) = self.own().joins.take() else { return };
        self.counters.gathered.bump();
        while let Some(record) = self.queue().give() {
            record.send_to(self, other);
        }
    }

    /// Moves some of the runnable microprocesses here to idle virtual processors.
    #[cold]
    pub(crate) fn share(self, runs: Runs) {
        let vps = self.shared().vps();
        let idle = vps.iter().filter(|vp| vp.is_free()).count();
        let count = self.surplus(idle, runs);
        let idle_vps = vps.iter().filter(|vp| vp.is_free()).take(idle).cycle();
        for (_, vp) in (0..count).zip(idle_vps) {
            let Some(record) = self.queue().give() else { break };
            self.counters.shared.bump();
            record.send_to(self, vp);
        }
        // A microprocess that still waits behind a long run, for lack of idle virtual processors,
        // is checked again.
        self.set_offered(runs == Runs::Long && !self.queue().is_empty());
    }

    /// How many microprocesses to give to `idle` virtual processors.
    ///
    /// If none runs here, one stays, whatever the scheduler says. Otherwise two virtual processors
    /// that ask each other for work would pass it to and fro and never run it.
    fn surplus(self, idle: usize, runs: Runs) -> usize {
        let kept = usize::from(self.current.get().is_none());
        let runnable = self.queue().count_up_to(COUNTED_MAX);
        self.queue().surplus(idle, runs).min(runnable.saturating_sub(kept))
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "makes a token for a virtual processor that no thread holds")]
mod tests {
    use core::ptr;

    use super::super::{Masked, Vp};
    use crate::processor::record::Record;
    use crate::processor::scheduler::{Arrival, Runs};
    use crate::processor::slot;
    use crate::schedule::mask;

    #[test]
    fn single_microprocess_stays_if_none_runs() {
        let section = mask();
        let vp: &'static Vp = Box::leak(Box::new(Vp::new(0, ptr::null_mut())));
        // SAFETY: no other thread knows it.
        let masked = unsafe { Masked::assume(vp) };
        let fresh = |id| -> &'static Record {
            let record = slot::make(slot::STACKLESS).expect("memory for a record");
            record.renew(vp, id, 16, kyocho_arch::Context::NULL);
            record
        };
        let (waiting, running) = (fresh(1), fresh(2));
        masked.queue().push(waiting, Arrival::Woken);
        let surplus = [Some(running), None].map(|current| {
            vp.current.set(current);
            masked.surplus(1, Runs::Long)
        });
        section.leave();
        assert_eq!(surplus, [1, 0]);
    }
}
