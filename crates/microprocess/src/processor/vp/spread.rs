//! Who leaves a virtual processor for another one: see [`balance`]. By the holder, masked.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;

use super::{Masked, Vp, attention};
use crate::processor::balance::{self, COUNTED_MAX, TRAVELS};
use crate::processor::record::Record;
use crate::processor::scheduler::Runs;

impl Vp {
    /// Whether somebody has come since it was heard last.
    pub(crate) fn has_offered(&self) -> bool {
        self.offered.load(Ordering::Relaxed)
    }

    /// Notes whether somebody waits for whom the monitor is to look.
    pub(crate) fn set_offered(&self, waits: bool) {
        self.offered.store(waits, Ordering::Relaxed);
    }

    /// Whether it may call the monitor from now on, or waits until that comes.
    pub(crate) fn let_offer(&self, may: bool) {
        let others = self.shared().vps().len() > 1;
        self.offers.store(others && may, Ordering::Relaxed);
    }
}

impl Masked<'_> {
    /// `record` became runnable here. What runs gives way to it once the holder unmasks, if that is less urgent; and while others are
    /// idle, the monitor is to see whether they are worth waking for who waits.
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

    /// The holder has entered an object whose last user was virtual processor `from`. Where that happens all the time, those who use the objects are to be
    /// together: the one of the higher number gives all it has to the other.
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

    /// Everybody who is here and may move goes to virtual processor `index`, if that runs, at the next scheduling point. By the holder, masked.
    pub(crate) fn join_now(self, index: usize) {
        if let Some(other) = self.shared().vp(index) {
            self.own().joins.set(Some(other));
            self.attention.fetch_or(attention::GATHER, Ordering::Relaxed);
        }
    }

    /// Gives everybody who may move to the virtual processor that this one joins, if it does. By the holder, on the base.
    pub(crate) fn gather(self) {
        let Some(other) = self.own().joins.take() else { return };
        self.counters.gathered.bump();
        while let Some(record) = self.queue().give() {
            record.send_to(self, other);
        }
    }

    /// Moves some of what is runnable here to virtual processors that are idle.
    #[cold]
    pub(crate) fn share(self, runs: Runs) {
        let vps = self.shared().vps();
        let idle = vps.iter().filter(|vp| vp.is_free()).count();
        let count = self.surplus(idle, runs);
        let heirs = vps.iter().filter(|vp| vp.is_free()).take(idle).cycle();
        for (_, vp) in (0..count).zip(heirs) {
            let Some(record) = self.queue().give() else { break };
            self.counters.shared.bump();
            record.send_to(self, vp);
        }
        // Who stays behind a long run, for want of idle ones just now, is looked after again.
        self.set_offered(runs == Runs::Long && !self.queue().is_empty());
    }

    /// How many to give to `idle` virtual processors.
    ///
    /// Where nobody runs, one stays, whatever the scheduler says: two virtual processors that ask each other for work would hand it to and fro and
    /// never run it.
    fn surplus(self, idle: usize, runs: Runs) -> usize {
        let kept = usize::from(self.current.get().is_none());
        let runnable = self.queue().count_up_to(COUNTED_MAX);
        self.queue().surplus(idle, runs).min(runnable.saturating_sub(kept))
    }
}

#[cfg(test)]
#[expect(unsafe_code, reason = "makes a token of its own")]
mod tests {
    use core::ptr;

    use super::super::{Masked, Vp};
    use crate::processor::record::Record;
    use crate::processor::scheduler::{Arrival, Runs};
    use crate::processor::slot;
    use crate::schedule::mask;

    #[test]
    fn the_only_one_stays_where_nobody_runs() {
        let section = mask();
        let vp: &'static Vp = Box::leak(Box::new(Vp::new(0, ptr::null_mut())));
        // SAFETY: nobody else has it.
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
