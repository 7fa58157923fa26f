//! The service that enforces time limits: of policies for their answers, and of terminated threads
//! for their ends.

use crate::kernel::session::thread::{LispThread, REQUEST_ABANDON};
use crate::kernel::{Kernel, lock};
use core::time::Duration;
use kyocho_microprocess::{Microprocess, park, park_timeout};
use kyocho_sys::prim::clock::monotonic_ns;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How long a terminated thread may run its `dynamic-wind` procedures.
const GRACE_NS: u64 = 1_000_000_000;

/// The service, and the threads that it waits for.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// Threads that run their last `dynamic-wind` procedures, with their time limits, in order of
    /// time.
    ending: Mutex<VecDeque<(u64, Arc<LispThread>)>>,
    microprocess: Mutex<Option<Microprocess>>,
}

impl Watchdog {
    /// Makes the service check the time limits.
    pub(crate) fn wake(&self) {
        super::wake(&self.microprocess);
    }

    /// Records that the thread was terminated and runs its `dynamic-wind` procedures.
    pub(crate) fn ends(&self, thread: &Arc<LispThread>) {
        let mut ending = lock(&self.ending);
        ending.push_back((monotonic_ns() + GRACE_NS, Arc::clone(thread)));
        let is_first = ending.len() == 1;
        drop(ending);
        if is_first {
            self.wake();
        }
    }

    /// Records that the thread has ended in time.
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

    /// Ends late threads at once. Returns the next time limit.
    fn abandon_late(&self) -> Option<u64> {
        while let Some(thread) = self.next_late() {
            thread.request(REQUEST_ABANDON);
            // A suspended thread would not process a request; a thread that has ended needs none.
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

    /// The service's microprocess.
    #[cfg(test)]
    pub(crate) fn microprocess(&self) -> Microprocess {
        (*lock(&self.microprocess)).expect("the system has booted")
    }
}
