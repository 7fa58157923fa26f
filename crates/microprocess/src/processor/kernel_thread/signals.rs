//! Signals to a kernel thread: one interrupts the code that it runs, the other ends the call in
//! which it sleeps.

use kyocho_sys::signal::{self, Signal};

use super::KernelThread;

/// Interrupts running code. Hardly any program uses this signal, and its default action is to
/// ignore it.
pub(crate) const PREEMPTING: Signal = Signal::URG;

/// The signal that makes a sleeping call return early: no call is restarted after it.
pub(crate) fn interrupting_signal() -> Signal {
    Signal::realtime(10)
}

impl KernelThread {
    /// Interrupts the thread whatever it does, even while it sleeps.
    pub(crate) fn interrupt(&self) {
        if let Some(thread) = self.id() {
            // If the thread has ended, it holds nothing.
            let _gone = signal::send(thread, PREEMPTING);
        }
    }

    /// The event *Unblocked* for a thread that came back from the kernel without calling the
    /// runtime. Interrupts the thread if it runs its microprocess without a virtual processor.
    pub(crate) fn interrupt_straggler(&self) {
        let comes_itself = self.is_masked();
        if self.is_stranded() && !comes_itself && self.asleep().is_none() {
            self.interrupt();
        }
    }

    /// Makes the kernel call in which the thread sleeps return early, if signals interrupt that
    /// call.
    pub(crate) fn interrupt_call(&self) {
        if let Some(thread) = self.id() {
            // If the thread has ended or come back already, nothing is interrupted.
            let _gone = signal::send(thread, interrupting_signal());
        }
    }
}
