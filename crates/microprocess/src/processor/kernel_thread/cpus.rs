//! Settings of a kernel thread in the host: the CPUs on which it may run, and how exactly its
//! sleeps end.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::scheduling::{CpuSet, set_affinity, set_timer_slack_ns};
use kyocho_sys::task::ThreadId;

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

    /// From now on the calling thread's sleeps end in time, and not up to 50 µs late. For a thread
    /// that sleeps until the next timer. Other sleeps of a program in the kernel may end together,
    /// as in any program.
    pub(crate) fn be_exact(&self) {
        if !self.is_exact.replace(true) {
            // If the host refuses, timers are late.
            let _late = set_timer_slack_ns(1);
        }
    }

    /// Resets how exactly the sleeps of the calling thread, and of threads that start as its
    /// copies, end. They end as those of the first thread of the process.
    pub(crate) fn be_as_exact_as_others(&self) {
        if self.is_exact.replace(false) {
            // If the host refuses, a child is woken more exactly than necessary.
            let _exact = set_timer_slack_ns(0);
        }
    }
}
