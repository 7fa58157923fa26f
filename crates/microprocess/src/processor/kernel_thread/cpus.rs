//! What the host knows of a kernel thread: on which CPUs it may run, and how exactly its sleeps end.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::scheduling::{CpuSet, set_affinity, set_timer_slack_ns};
use kyocho_sys::task::ThreadId;

use super::{ANY_CPU, KernelThread};

impl KernelThread {
    /// Confines this thread, which is the caller or waits for a processor, to `cpu`. One that sleeps is moved within 2 µs, one
    /// that runs takes ten times as long.
    pub(crate) fn pin(&self, cpu: usize) {
        // One that has not begun yet does so itself.
        let Some(id) = self.id() else { return };
        if self.cpu.replace(cpu) != cpu && cpu != ANY_CPU && !self.roams.load(Ordering::Relaxed) {
            // Refused, say because the CPU has gone: then the thread runs elsewhere, and detection is slower.
            let _elsewhere = set_affinity(id, &CpuSet::single(cpu));
        }
    }

    /// Lets this thread, the calling one, run on `cpus`, whatever its processor is pinned to, until [`settle`](Self::settle).
    pub(crate) fn roam(&self, cpus: &CpuSet) {
        self.roams.store(true, Ordering::Relaxed);
        // Refused: then it runs where it has run.
        let _wider = set_affinity(ThreadId::current(), cpus);
    }

    /// Lets this thread, the calling one, run where its processor is pinned to, or on `before` if nowhere. Masked.
    pub(crate) fn settle(&self, before: &CpuSet) {
        self.roams.store(false, Ordering::Relaxed);
        let cpu = self.cpu.get();
        let pinned = (cpu != ANY_CPU).then(|| CpuSet::single(cpu));
        // Refused: then it runs where it has run.
        let _narrower = set_affinity(ThreadId::current(), pinned.as_ref().unwrap_or(before));
    }

    /// The calling thread's sleeps end in time from here on, and not up to 50 µs later. For who sleeps until the next timer: what a program
    /// sleeps in the kernel by itself may end together with others' sleeps, as it does in any program.
    pub(crate) fn be_exact(&self) {
        if !self.is_exact.replace(true) {
            // Refused: then timers are late.
            let _late = set_timer_slack_ns(1);
        }
    }

    /// The calling thread, and those that start as its copies, sleep as the process's first one does.
    pub(crate) fn be_as_exact_as_others(&self) {
        if self.is_exact.replace(false) {
            // Refused: then a child is woken more exactly than it might.
            let _exact = set_timer_slack_ns(0);
        }
    }
}
