//! The timers of a virtual processor, and which sleepers go before their equals when they wake. All
//! functions are called by the holder, with events masked.

use core::cell::Cell;

use kyocho_sys::prim::atomic::Ordering;

use super::{Masked, NEVER_NS};
use crate::processor::record::{Record, State};
use crate::processor::scheduler::Arrival;

/// How many microprocesses that slept may go before their equals in immediate succession.
pub(super) const LEADS_MAX: u64 = 16;

impl Masked<'_> {
    /// Sets the timer of `record`, which is being parked.
    pub(crate) fn set_timer(self, record: &'static Record, deadline_ns: u64) {
        self.own().timers.insert(record, deadline_ns);
        if deadline_ns < self.next_deadline_ns.load(Ordering::Relaxed) {
            self.next_deadline_ns.store(deadline_ns, Ordering::Release);
            // An idle holder sleeps at most until its earliest timer; a busy one relies on the
            // monitor.
            if !self.queue().is_empty() {
                self.shared().expect_deadline(deadline_ns);
            }
        }
    }

    /// Wakes the sleepers whose deadline has passed.
    ///
    /// The first of them goes before its equals if enough switches have paid for that
    /// ([`may_lead`](Self::may_lead)). Otherwise a periodic microprocess would wait for all
    /// runnable ones, each of which may take a hand-over of the core. Equals that never sleep keep
    /// at least half of the turns.
    pub(crate) fn fire(self, now_ns: u64) {
        let mut may_lead = true;
        while let Some(record) = self.own().timers.take_up_to(now_ns) {
            self.counters.timers.bump();
            record.timed_out.set(true);
            record.state.set(State::Runnable);
            if may_lead && self.may_lead(&self.own().sleeper_leads) {
                self.queue().push_leader(record, Arrival::Woken);
                may_lead = false;
            } else {
                self.queue().push(record, Arrival::Woken);
            }
            self.contend(record);
        }
        let next = self.own().timers.least().unwrap_or(NEVER_NS);
        self.next_deadline_ns.store(next, Ordering::Release);
    }

    /// Whether a microprocess whose kernel thread slept may go before its equals. If so, that is
    /// counted as done.
    pub(crate) fn unblocked_may_lead(self) -> bool {
        self.may_lead(&self.own().unblocked_leads)
    }

    /// Whether a microprocess that slept may go before its equals. Every such lead is paid for with
    /// two switches, one of them to another microprocess; `paid` counts them.
    fn may_lead(self, paid: &Cell<u64>) -> bool {
        let turns = self.counters.switches.get();
        let due = paid.get().max(turns.saturating_sub(2 * LEADS_MAX)) + 2;
        let may = due <= turns;
        if may {
            paid.set(due);
        }
        may
    }
}
