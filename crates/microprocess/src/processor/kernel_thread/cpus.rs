//! Settings of a kernel thread in the host: the CPUs on which it may run, and how exactly its
//! sleeps end.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::scheduling::{CpuSet, set_affinity, set_timer_slack_ns};

use super::{ANY_CPU, KernelThread};

impl KernelThread {
    /// Confines this thread, which is the caller or waits for a virtual processor, to `cpu`. The
    /// host moves a sleeping thread within 2 µs; a running one takes ten times as long.
    pub(crate) fn pin(&self, cpu: usize) {
        // A thread that has not begun yet pins itself when it begins.
        let Some(id) = self.id() else { return };
        if self.cpu.replace(cpu) != cpu && cpu != ANY_CPU && !self.roams.load(Ordering::Relaxed) {
            // If the host refuses, say because the CPU is offline, the thread runs elsewhere. Then
            // detection is slower.
            let _elsewhere = set_affinity(id, &CpuSet::single(cpu));
        }
    }

    /// From now on the calling thread's sleeps end in time, and not up to 50 µs late. Called by a
    /// thread that sleeps until the next timer. Other threads keep the slack, which lets the host
    /// end several sleeps at once.
    pub(crate) fn be_exact(&self) {
        if !self.is_exact.replace(true) {
            // If the host refuses, timers are late.
            let _late = set_timer_slack_ns(1);
        }
    }
}
