//! Orders to a microprocess from any thread: end, suspend, resume, or end the present step.
//!
//! What an order does to a microprocess in each of its states:
//! [`orders`](crate::processor::orders).

use core::fmt;

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
    /// Ends the microprocess, whatever it is doing.
    ///
    /// It unwinds at its next kill point: where an operation of this crate that may wait begins,
    /// where it waits, or at a [`yield_now`](crate::yield_now). Destructors run; mutexes that it
    /// holds are poisoned; joining it returns [`Killed`](crate::Killed). A system call in which it
    /// sleeps is interrupted repeatedly until it returns (`EINTR`); if the kernel cannot interrupt
    /// the call, the microprocess ends when the call returns. If it waits for the end of a
    /// [`scope`](crate::scope), the members are killed, too. A loop that never calls this crate
    /// loses its virtual processor for good after some eight time slices. Its destructors do not
    /// run then. [`always_unwind`] prevents that. On a stackless microprocess,
    /// [`Stackless::killed`](crate::Stackless::killed) is called.
    ///
    /// Returns at once, before it has ended. Any kernel thread may call it. Some 100 ns.
    ///
    /// # Errors
    /// It has ended.
    pub fn kill(&self) -> Result<(), Gone> {
        self.order(KILL, SUSPEND)
    }

    /// Asks a stackless microprocess to end its step. [`is_wanted`](Self::is_wanted) returns `true`
    /// from then on. A system call in which it sleeps, or is about to sleep, is interrupted
    /// repeatedly until it returns (`EINTR`), if the kernel can interrupt it. The request ends when
    /// the next step begins. It has no effect on stackful microprocesses.
    ///
    /// Returns at once. Any kernel thread may call it. Some 100 ns.
    ///
    /// # Errors
    /// It has ended.
    pub fn want(&self) -> Result<(), Gone> {
        self.order(WANTED, 0)
    }

    /// Whether it has been [killed](Self::kill) and the kill has not taken effect yet.
    #[must_use]
    pub fn is_kill_pending(&self) -> bool {
        let record = self.record();
        record.orders.is_killed() && record.id() == self.id()
    }

    /// Whether it is stackless and now in the call of
    /// [`Stackless::killed`](crate::Stackless::killed).
    #[must_use]
    pub fn is_being_killed(&self) -> bool {
        let record = self.record();
        record.orders.is_delivering_kill() && record.id() == self.id()
    }

    /// Suspends it until [`resume`](Self::resume). It is not runnable meanwhile, and a wake that
    /// comes in that time is kept.
    ///
    /// A microprocess that sleeps in the kernel is suspended when it returns; a stackless one is
    /// suspended between two steps. While a microprocess is suspended, no deadlock is reported.
    ///
    /// # Errors
    /// It has ended.
    pub fn suspend(&self) -> Result<(), Gone> {
        self.order(SUSPEND, 0)
    }

    /// Resumes it after [`suspend`](Self::suspend); has no other effect.
    ///
    /// # Errors
    /// It has ended.
    pub fn resume(&self) -> Result<(), Gone> {
        self.order(0, SUSPEND)
    }

    /// Changes its priority from outside, as [`set_priority`](Self::set_priority).
    #[cfg(feature = "control")]
    pub(crate) fn order_priority(
        &self,
        priority: crate::data::priority::Priority,
    ) -> Result<(), Gone> {
        let record = self.record();
        if record.id() != self.id() {
            return Err(Gone);
        }
        // As `set_priority`, but the caller is a kernel thread outside any runtime, and must not
        // turn locks on for all.
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
        // The running microprocess may not check for a long time.
        record.home().shared().monitor.poke();
        Ok(())
    }
}

/// From now on a kill ends the caller only by unwinding. It is never abandoned, however long it
/// computes between two kill points.
///
/// For microprocesses that hold something that all others need while they compute, and reach the
/// next kill point in bounded time.
///
/// # Panics
/// The caller is not a microprocess.
pub fn always_unwind() {
    schedule::current().always_unwinds.set(true);
}
