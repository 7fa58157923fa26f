//! Orders to a microprocess from anywhere: that it ends, stands still, goes on, or ends its step.
//!
//! What an order does to a microprocess in each of its states: [`orders`](crate::processor::orders).

use core::fmt;

use crate::data::priority::Priority;
use crate::processor::orders::{KILL, SUSPEND, WANTED};
use crate::processor::record::{State, remote};
use crate::schedule;
use crate::thread::microprocess::Microprocess;

/// The microprocess has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such microprocess, or it has ended")
    }
}

impl core::error::Error for Gone {}

impl Microprocess {
    /// Ends it, whatever it is doing.
    ///
    /// It unwinds at its next kill point: where an operation of this crate that may wait begins, where it waits, at a
    /// [`yield_now`](crate::yield_now). Destructors run; mutexes that it holds are poisoned; joining it returns [`Killed`](crate::Killed). A call that it sleeps
    /// in is interrupted if the kernel can (`EINTR`), again and again until it is back; else it ends when the call returns. One that waits for a
    /// [`scope`](crate::scope) takes the members with it. A loop that never calls this crate is taken off its virtual processor for good after some
    /// eight time slices, and then its destructors do not run, unless it has called [`always_unwind`]. A stackless one is told by
    /// [`Stackless::killed`](crate::Stackless::killed).
    ///
    /// Returns at once, before it has ended. Any kernel thread may call it. Some 100 ns.
    ///
    /// # Errors
    /// It has ended.
    pub fn kill(&self) -> Result<(), Gone> {
        self.order(KILL, SUSPEND)
    }

    /// Wants the step of one without a stack to end: [`is_wanted`](Self::is_wanted) says so, and a call that it sleeps in, or is about to sleep in,
    /// is interrupted if the kernel can (`EINTR`), again and again until it is back. The next step has heard of it. Others do not notice.
    ///
    /// Returns at once. Any kernel thread may call it. Some 100 ns.
    ///
    /// # Errors
    /// It has ended.
    pub fn want(&self) -> Result<(), Gone> {
        self.order(WANTED, 0)
    }

    /// Whether it has been [killed](Self::kill) and does not know yet: it runs, and ends its wait, where it waits.
    #[must_use]
    pub fn is_condemned(&self) -> bool {
        let record = self.record();
        record.orders.is_killed() && record.id() == self.id()
    }

    /// Whether it takes no steps with a stack of its own, and is in the one in which it is [told](crate::Stackless::killed) that it has been killed.
    #[must_use]
    pub fn is_being_killed(&self) -> bool {
        let record = self.record();
        record.orders.is_being_told() && record.id() == self.id()
    }

    /// Makes it stand still until [`resume`](Self::resume): it counts as not runnable, and a wake that comes meanwhile is kept.
    ///
    /// A microprocess that sleeps in the kernel stands still when it comes back; a stackless one, between two steps. While one is
    /// suspended, nobody calls the rest a deadlock.
    ///
    /// # Errors
    /// It has ended.
    pub fn suspend(&self) -> Result<(), Gone> {
        self.order(SUSPEND, 0)
    }

    /// Lets it go on after [`suspend`](Self::suspend); does nothing else.
    ///
    /// # Errors
    /// It has ended.
    pub fn resume(&self) -> Result<(), Gone> {
        self.order(0, SUSPEND)
    }

    /// Changes its priority from outside, as [`set_priority`](Self::set_priority).
    pub(crate) fn order_priority(&self, priority: Priority) -> Result<(), Gone> {
        let record = self.record();
        if record.id() != self.id() {
            return Err(Gone);
        }
        // As `set_priority`, but from a kernel thread of no runtime, which must not turn locks on for all.
        record.ask_level(priority.level());
        record.post(remote::CHANGED);
        self.order(0, 0)
    }

    /// Sets and clears orders.
    fn order(&self, set: u64, clear: u64) -> Result<(), Gone> {
        let record = self.record();
        let over = matches!(record.state.get(), State::Free | State::Finished | State::Abandoned);
        if over || !record.orders.change(self.id(), set, clear) {
            return Err(Gone);
        }
        record.post(remote::ORDERS);
        // What runs may not look for a long time.
        record.home().shared().monitor.poke();
        Ok(())
    }
}

/// From now on the caller, where it is killed, ends by unwinding alone: it is never abandoned, however long it computes between two kill points.
///
/// For who holds, while it computes, what all others need, and whose way to the next kill point is bounded: a kill is put off until then.
///
/// # Panics
/// The caller is no microprocess.
pub fn always_unwind() {
    schedule::current().always_unwinds.set(true);
}
