//! Orders: what others want of a microprocess, whatever it is doing: that it ends, that it stands still, that it looks up.
//!
//! ```text
//!   anybody ── set a bit of the order word, post ORDERS ──► holder of its home (masked)
//!
//!   it is …                 kill                                        suspend
//!   running                 attention, then its next *kill point*       stands aside at once
//!   runnable, not started   by way of the base, then its next point     stands aside when its turn comes
//!   parked                  the wait ends as by a time limit; unwinds   marked; a wake is kept, then stands aside
//!   asleep in the kernel    its call is interrupted; when it is back    when it is back
//!   stackless               `Stackless::killed` instead of a step       stands aside between steps
//! ```
//!
//! A signal ends the call that it meets. One that comes a moment before the call, or meets the sleep for a page or a lock on the way to it, is
//! lost. So whoever takes a processor from a sleeper looks whether that one has orders to end its call ([`end_call`]), and from the first signal on the
//! monitor sends more, less and less often, until the sleeper calls us. To *want* a stackless one does that and no more: so its step, which looks at
//! the poll word, hears of what its program has to tell it.
//!
//! Where a killed microprocess unwinds: [`kill_point`](crate::schedule::kill_point).
//!
//! **Invariant:** while what runs on a virtual processor is killed and has not unwound, `attention` holds
//! [`ORDERS`](crate::processor::vp::attention::ORDERS) there. So a kill point loads a word that it loads anyway.
//!
//! Source: Paper 1, part 5 (stopping and resuming a microprocess by its global identifier).

use kyocho_sys::prim::atomic::Ordering;

use crate::processor::record::{Record, State};
use crate::processor::scheduler::Arrival;
use crate::processor::trace::What;
use crate::processor::vp::{Masked, attention};

mod word;

use word::Due;
pub(crate) use word::{KILL, Orders, SUSPEND, WANTED};

impl Masked<'_> {
    /// Somebody changed the orders of `record`, whose home this is. By the holder, masked.
    #[cold]
    pub(crate) fn take_orders(self, record: &'static Record) {
        self.trace.note(What::Changed, Some(record));
        if !record.is_stackless.get() {
            record.orders.forget_want();
        }
        record.refresh_special();
        match record.orders.due(record.state.get()) {
            Due::GoesOn => {
                record.state.set(State::Runnable);
                self.queue().push(record, Arrival::Woken);
            }
            Due::WaitEnds => self.interrupt(record),
            Due::CallEnds => end_call(record),
            Due::Nothing => {}
        }
    }

    /// Ends the wait of `record`, which is parked and killed, as a time limit would.
    fn interrupt(self, record: &'static Record) {
        if record.is_stackless.get() {
            return self.wake(record);
        }
        // A joiner that is no longer registered is about to be woken.
        let unwinds = record.bound.get().is_some() && record.is_unwinding.get();
        let ends_anyway = unwinds || record.is_ending.get();
        if ends_anyway || !record.stop_joining() {
            return;
        }
        if record.timer.is_set() {
            self.own().timers.remove(record);
        }
        record.timed_out.set(true);
        record.state.set(State::Runnable);
        self.queue().push(record, Arrival::Woken);
    }

    /// Reminds `record`, which is about to run here, of its orders.
    #[inline]
    pub(crate) fn remind(self, record: &'static Record) {
        if record.orders.is_killed() {
            self.attention.fetch_or(attention::ORDERS, Ordering::Relaxed);
        }
    }
}

/// Lets the call that `record`, which is Blocked, sleeps in return early. By the holder of its home, or who takes that processor.
#[cold]
pub(crate) fn end_call(record: &'static Record) {
    // Stackless ones that make the call in a loop look at this.
    record.poll.store(1, Ordering::Relaxed);
    if let Some(thread) = record.bound.get() {
        thread.call_back();
        thread.interrupt_call();
        record.home().shared().monitor.call_again();
    }
}
