//! Orders: requests to a microprocess, whatever it is doing, to end (kill), to stop (suspend), or
//! to poll its program's requests (want).
//!
//! ```text
//!   any thread ── set a bit of the order word, post ORDERS ──► holder of its home (masked)
//!
//!   state                   kill                                        suspend
//!   running                 attention, then its next *kill point*       stops at once
//!   runnable, not started   by way of the base, then its next point     stops when its turn comes
//!   parked                  the wait ends as by a time limit; unwinds   marked; a wake is kept, then it stops
//!   asleep in the kernel    its call is interrupted; acts on return     acts on return
//!   stackless               `Stackless::killed` instead of a step       stops between steps
//! ```
//!
//! A signal interrupts the system call that the thread is in. It has no effect if it arrives just
//! before the call, or during a sleep for a page or a lock on the way to it. So a thread that takes
//! a virtual processor from a sleeper checks whether the sleeper has orders to end its call
//! ([`end_call`]). After the first signal the monitor sends more, at growing intervals, until the
//! sleeper calls the runtime. A *want* order to a stackless microprocess only does that: it
//! interrupts the call and sets the poll word, which the step reads.
//!
//! Where a killed microprocess unwinds: [`kill_point`](crate::schedule::kill_point).
//!
//! **Invariant:** while the running microprocess of a virtual processor is killed and has not
//! unwound, `attention` holds [`ORDERS`](crate::processor::vp::attention::ORDERS) there. So a kill
//! point costs no extra load: it reads that word anyway.
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
    /// Acts on changed orders of `record`, whose home this is. Call as the holder, with events
    /// masked.
    #[cold]
    pub(crate) fn take_orders(self, record: &'static Record) {
        self.trace.note(What::Changed, Some(record));
        if !record.is_stackless.get() {
            record.orders.forget_want();
        }
        record.refresh_special();
        match record.orders.due(record.state.get()) {
            Due::Resumes => {
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

    /// Sets the attention bit if `record`, which is about to run here, is killed.
    #[inline]
    pub(crate) fn remind(self, record: &'static Record) {
        if record.orders.is_killed() {
            self.attention.fetch_or(attention::ORDERS, Ordering::Relaxed);
        }
    }
}

/// Makes the system call in which the blocked `record` sleeps return early. Call as the holder of
/// its home, or while taking that virtual processor.
#[cold]
pub(crate) fn end_call(record: &'static Record) {
    // A stackless microprocess that repeats the call in a loop reads this word.
    record.poll.store(1, Ordering::Relaxed);
    if let Some(thread) = record.bound.get() {
        thread.call_back();
        thread.interrupt_call();
        record.home().shared().monitor.call_again();
    }
}
