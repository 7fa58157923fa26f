//! Settings of a kernel thread in the host while it starts a child process, which inherits them.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::scheduling::{CpuSet, set_affinity, set_timer_slack_ns};
use kyocho_sys::task::ThreadId;

use super::{ANY_CPU, KernelThread};

impl KernelThread {
    /// Lets the calling thread, which is this one, run on `cpus` until [`settle`](Self::settle),
    /// whatever CPU its virtual processor is pinned to.
    pub(crate) fn roam(&self, cpus: &CpuSet) {
        self.roams.store(true, Ordering::Relaxed);
        // If the host refuses, the thread runs where it ran before.
        let _wider = set_affinity(ThreadId::current(), cpus);
    }

    /// Lets the calling thread, which is this one, run on the CPU that its virtual processor is
    /// pinned to, or on `before` if there is none. Call with events masked.
    pub(crate) fn settle(&self, before: &CpuSet) {
        self.roams.store(false, Ordering::Relaxed);
        let cpu = self.cpu.get();
        let pinned = (cpu != ANY_CPU).then(|| CpuSet::single(cpu));
        // If the host refuses, the thread runs where it ran before.
        let _narrower = set_affinity(ThreadId::current(), pinned.as_ref().unwrap_or(before));
    }

    /// Resets the timer slack of the calling thread to its default. A thread or process that it
    /// starts inherits the slack.
    pub(crate) fn be_as_exact_as_others(&self) {
        if self.is_exact.replace(false) {
            // If the host refuses, a child is woken more exactly than necessary.
            let _exact = set_timer_slack_ns(0);
        }
    }
}
