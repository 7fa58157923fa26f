//! Signals to a kernel thread: one interrupts what it runs, the other ends the call that it sleeps in.

use kyocho_sys::signal::{self, Signal};

use super::KernelThread;

/// Interrupts running code. Hardly any program uses it, and by default it does nothing.
pub(crate) const PREEMPTING: Signal = Signal::URG;

/// The signal that lets a sleeping call return early: no call is restarted after it.
pub(crate) fn interrupting_signal() -> Signal {
    Signal::realtime(10)
}

impl KernelThread {
    /// Interrupts whatever it does, even while it sleeps.
    pub(crate) fn interrupt(&self) {
        if let Some(thread) = self.id() {
            // Gone: then it holds nothing.
            let _gone = signal::send(thread, PREEMPTING);
        }
    }

    /// Unblocked, for a thread that does not ask: interrupts it if it runs on in its microprocess
    /// without a processor instead of calling the runtime.
    pub(crate) fn interrupt_straggler(&self) {
        let comes_itself = self.is_masked();
        if self.is_stranded() && !comes_itself && self.asleep().is_none() {
            self.interrupt();
        }
    }

    /// Lets the kernel call that it sleeps in return early, if it is one that signals interrupt.
    pub(crate) fn interrupt_call(&self) {
        if let Some(thread) = self.id() {
            // Gone, or back already: it interrupts nothing.
            let _gone = signal::send(thread, interrupting_signal());
        }
    }
}
