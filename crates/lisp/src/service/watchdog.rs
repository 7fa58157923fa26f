//! The service that looks at clocks: policies that are late with an answer, and threads that are late with their end.

use crate::system::kernel::{Kernel, lock};
use crate::thread::lisp_thread::{LispThread, REQUEST_ABANDON};
use core::time::Duration;
use kyocho_microprocess::{Microprocess, park, park_timeout};
use kyocho_sys::prim::clock::monotonic_ns;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How long a thread that somebody has terminated may run what `dynamic-wind` has it run.
const GRACE_NS: u64 = 1_000_000_000;

/// The service, and the threads it waits for.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// Threads that run what they do last, and until when they may; in order of time.
    ending: Mutex<VecDeque<(u64, Arc<LispThread>)>>,
    microprocess: Mutex<Option<Microprocess>>,
}

impl Watchdog {
    /// Has it look at the clocks.
    pub(crate) fn wake(&self) {
        super::wake(&self.microprocess);
    }

    /// The thread was terminated, and runs what it does last.
    pub(crate) fn ends(&self, thread: &Arc<LispThread>) {
        let mut ending = lock(&self.ending);
        ending.push_back((monotonic_ns() + GRACE_NS, Arc::clone(thread)));
        let is_first = ending.len() == 1;
        drop(ending);
        if is_first {
            self.wake();
        }
    }

    /// The thread has ended in time.
    pub(crate) fn has_ended(&self, thread: &Arc<LispThread>) {
        lock(&self.ending).retain(|(_, ending)| !Arc::ptr_eq(ending, thread));
    }

    /// The service's body, until the process ends.
    pub(crate) fn run(&self, kernel: &Kernel) {
        *lock(&self.microprocess) = Some(Microprocess::current());
        loop {
            let ends_ns = [self.abandon_late(), kernel.policies.watch(kernel)];
            match ends_ns.into_iter().flatten().min() {
                Some(ns) => park_timeout(Duration::from_nanos(ns.saturating_sub(monotonic_ns()))),
                None => park(),
            }
        }
    }

    /// Ends who is late where he stands; until when the next one may run.
    fn abandon_late(&self) -> Option<u64> {
        while let Some(thread) = self.next_late() {
            thread.request(REQUEST_ABANDON);
            // One that stands still takes no step for a request; one that has ended needs none.
            let _ = thread.microprocess.get().map(Microprocess::resume);
        }
        lock(&self.ending).front().map(|&(ends_ns, _)| ends_ns)
    }

    fn next_late(&self) -> Option<Arc<LispThread>> {
        let mut ending = lock(&self.ending);
        let is_late = ending.front().is_some_and(|&(ends_ns, _)| ends_ns <= monotonic_ns());
        let late = if is_late { ending.pop_front() } else { None };
        late.map(|(_, thread)| thread)
    }

    /// Who watches.
    #[cfg(test)]
    pub(crate) fn microprocess(&self) -> Microprocess {
        (*lock(&self.microprocess)).expect("the system is booted")
    }
}
