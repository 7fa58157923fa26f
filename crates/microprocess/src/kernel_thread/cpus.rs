//! What the host knows of a kernel thread: on which CPUs it may run, and how exactly its sleeps end.

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::scheduling::{CpuSet, set_affinity, set_timer_slack_ns};
use kyocho_sys::task::ThreadId;

use super::{ANY_CPU, KernelThread};
use crate::schedule::mask;

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

    /// Lets this thread, which is the caller and stays it, run on `cpus` while `body` does, whatever its processor is pinned to meanwhile; then
    /// where that is, or on `before` if nowhere.
    pub(crate) fn with_cpus<T>(
        &self,
        cpus: &CpuSet,
        before: &CpuSet,
        body: impl FnOnce() -> T,
    ) -> T {
        let me = ThreadId::current();
        self.roams.store(true, Ordering::Relaxed);
        // Refused, both: then it runs where it has run.
        let _wider = set_affinity(me, cpus);
        let value = body();
        let section = mask();
        self.roams.store(false, Ordering::Relaxed);
        let cpu = self.cpu.get();
        let pinned = (cpu != ANY_CPU).then(|| CpuSet::single(cpu));
        let _narrower = set_affinity(me, pinned.as_ref().unwrap_or(before));
        section.leave();
        value
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

#[cfg(test)]
mod tests {
    use kyocho_sys::scheduling::affinity;
    use kyocho_sys::skip::skip;

    use super::{CpuSet, KernelThread, ThreadId};
    use crate::bound;
    use crate::sync::tests::on_processors;

    /// Its processor moves while a process is started: the child gets all CPUs all the same, and the thread follows when that is over.
    #[test]
    fn a_thread_that_roams_is_pinned_afterwards() {
        let here = || affinity(ThreadId::current()).unwrap();
        let all = here();
        let cpus: Vec<usize> = all.iter().collect();
        let [first, .., last] = cpus[..] else {
            return skip("a_thread_that_roams_is_pinned_afterwards", "there is one CPU");
        };
        let roam_and_return = |cpu| {
            let thread = KernelThread::current();
            thread.with_cpus(&all, &here(), || {
                thread.pin(cpu);
                assert_eq!(here(), all);
            });
            here() == CpuSet::single(cpu)
        };
        // Where the host puts the thread aside just then, it comes back to where its processor is.
        let in_the_end = |cpu| assert!((0..100).any(|_| roam_and_return(cpu)), "never on {cpu}");
        on_processors(1, || bound(|| [first, last].into_iter().for_each(in_the_end)));
    }
}
