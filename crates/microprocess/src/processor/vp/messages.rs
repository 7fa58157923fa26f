//! What messages do to the microprocesses of a virtual processor, and the events reported to its
//! scheduler. All functions are called by the holder, with events masked.

use core::ptr;

use super::Masked;
use crate::processor::event::EventKind;
use crate::processor::inherit;
use crate::processor::record::{Kind, Record, State, remote};
use crate::processor::scheduler::Arrival;
use crate::processor::trace::What;
use crate::protocol::inbox::Link;

impl Masked<'_> {
    /// Does what a message asks for.
    pub(crate) fn handle(self, link: Link<Record>) {
        let record = link.record();
        let home = record.home();
        if !ptr::eq(home, self.vp()) {
            // It moved while the message was under way.
            return home.receive(link);
        }
        let bits = link.answer();
        if bits & remote::ARRIVE != 0 {
            record.state.set(State::Runnable);
            self.queue().push(record, Arrival::Moved);
        }
        if bits & remote::UNBLOCKED != 0 {
            self.unblocked(record);
        }
        if bits & remote::WAKE != 0 {
            self.wake(record);
        }
        if bits & remote::UNPARK != 0 {
            self.unpark(record);
        }
        if bits & remote::ORDERS != 0 {
            self.take_orders(record);
        }
        if bits & remote::CHANGED != 0 {
            self.changed(record);
            // The thread that asked may be outside any runtime, and cannot follow the chain of
            // waits. A record that was just woken no longer waits: this thread may be in the guard
            // of the object it waited for.
            if record.state.get() == State::Parked {
                inherit::propagate(self, record);
            }
        }
    }

    /// Unblocked: the kernel thread of `record` returned from its sleep and waits for its turn.
    fn unblocked(self, record: &'static Record) {
        self.note_unblocked(record);
        // It occupies a kernel thread until it has run, so it may run before its equals.
        if self.unblocked_may_lead() {
            self.queue().push_leader(record, Arrival::Unblocked);
        } else {
            self.queue().push(record, Arrival::Unblocked);
        }
    }

    /// Records that the kernel thread of `record`, which is bound to it, returned from its sleep.
    pub(crate) fn note_unblocked(self, record: &'static Record) {
        record.state.set(State::Runnable);
        self.counters.unblocked.bump();
        self.trace.note(What::Unblocked, Some(record));
        if self.queue().has_user() {
            let running = self.current.get();
            let outranked = running.is_some_and(|running| running.level() > record.level());
            let kind = if outranked { EventKind::UnblockedPreempted } else { EventKind::Unblocked };
            self.queue().tell(kind, self.index, Some(record));
        }
    }

    /// Changed: applies the level, the parameter and the pin that were asked for `record`. The
    /// caller decides anew what runs.
    pub(crate) fn changed(self, record: &'static Record) {
        let runs = self.current.get().is_some_and(|current| ptr::eq(current, record));
        let may_be_queued = record.state.get() == State::Runnable && !runs;
        let was_queued = may_be_queued && self.queue().remove(record, record.level());
        inherit::take_over(record);
        if runs && record.level() != self.listing.published() {
            self.publish(Some(record.level()));
        }
        record.refresh_special();
        self.trace.note(What::Changed, Some(record));
        self.queue().tell(EventKind::Changed, self.index, Some(record));
        if was_queued {
            self.queue().push(record, Arrival::Changed);
        }
    }

    /// Reports to the scheduler that a kernel thread without a microprocess received the virtual
    /// processor, and from which microprocess it was taken.
    pub(crate) fn resumed(self) {
        self.counters.resumed.bump();
        self.tell_blocked();
        self.queue().tell(EventKind::Resumed, self.index, None);
    }

    /// Reports to the scheduler from which microprocess the virtual processor was taken, if it was.
    pub(crate) fn tell_blocked(self) {
        if let Some(blocked) = self.own().blocked.take() {
            self.queue().tell(EventKind::Blocked, self.index, Some(blocked));
        }
    }

    /// Makes `record` runnable if it is parked; a wake that is too late does nothing.
    #[inline]
    pub(crate) fn wake(self, record: &'static Record) {
        if record.state.get() == State::Parked {
            if record.timer.is_set() {
                self.own().timers.remove(record);
            }
            record.state.set(State::Runnable);
            self.queue().push(record, Arrival::Woken);
            self.contend(record);
        }
    }

    /// Ends the present `park` of `record`, or the next one.
    pub(crate) fn unpark(self, record: &'static Record) {
        if record.state.get() == State::Parked && record.reason.get().kind == Kind::Park {
            self.wake(record);
        } else {
            record.token.set(true);
        }
    }
}
