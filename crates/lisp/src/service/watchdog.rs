//! The service that looks at clocks: policies that are late with an answer, threads that are late with their end, and those that were asked for
//! something where they could not hear it.

use crate::system::kernel::{Kernel, lock};
use crate::thread::lisp_thread::{LispThread, REQUEST_ABANDON, RUNNING, SAFE};
use crate::thread::wait::interrupt_kernel_call;
use core::time::Duration;
use kyocho_microprocess::{Microprocess, park, park_timeout};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// How long a thread that somebody has terminated may run what `dynamic-wind` has it run.
const GRACE_NS: u64 = 1_000_000_000;

/// When a thread that has not taken a request is called back from the kernel once more: soon, and then less and less often.
const CALL_MIN_NS: u64 = 1_000_000;
const CALL_MAX_NS: u64 = 250_000_000;

/// A thread that was asked for something while it ran, or was in a raw kernel call.
#[derive(Debug)]
struct Called {
    thread: Arc<LispThread>,
    next_ns: u64,
    wait_ns: u64,
}

impl Called {
    /// Whether it may still be in a kernel call, or about to begin one, without knowing of the request.
    fn may_be_deaf(&self) -> bool {
        let state = self.thread.state.load(Ordering::SeqCst);
        self.thread.requests.load(Ordering::SeqCst) != 0 && matches!(state, RUNNING | SAFE)
    }
}

/// The service, and the threads it waits for.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// A signal ends the kernel call that it meets. One that comes just before the call is lost, so it is sent until the request is taken.
    called: Mutex<Vec<Called>>,
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

    /// The thread was asked for something, and may be about to wait in the kernel without knowing.
    pub(crate) fn insist(&self, thread: &Arc<LispThread>) {
        let next_ns = monotonic_ns() + CALL_MIN_NS;
        let called = Called { thread: Arc::clone(thread), next_ns, wait_ns: CALL_MIN_NS };
        if called.may_be_deaf() {
            lock(&self.called).push(called);
            self.wake();
        }
    }

    /// The service's body, until the process ends.
    pub(crate) fn run(&self, kernel: &Kernel) {
        *lock(&self.microprocess) = Some(Microprocess::current());
        loop {
            let ends_ns = [self.abandon_late(), self.call_back(), kernel.policies.watch(kernel)];
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

    /// Calls those back whose time has come; when the next one's comes.
    fn call_back(&self) -> Option<u64> {
        let now_ns = monotonic_ns();
        let mut all = lock(&self.called);
        all.retain(Called::may_be_deaf);
        for called in all.iter_mut().filter(|called| called.next_ns <= now_ns) {
            interrupt_kernel_call(&called.thread);
            called.wait_ns = (called.wait_ns * 2).min(CALL_MAX_NS);
            called.next_ns = now_ns + called.wait_ns;
        }
        all.iter().map(|called| called.next_ns).min()
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
