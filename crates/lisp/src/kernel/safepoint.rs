//! The registry of running threads, and the protocol that stops them all for a collection.
//!
//! ```text
//! thread:    state = RUNNING; fence; stopping? -> wait
//! collector: stopping = true; fence; state == RUNNING? -> set its poll word, pause, check again
//!            (Dekker's algorithm: at least one sees the other's store)
//! ```
//!
//! A thread in a raw kernel call, or in long work that needs no Lisp values, is `SAFE`. The
//! collector does not wait for it, and it waits for the collector when it returns.

use crate::kernel::lock;
use crate::kernel::session::thread::{LispThread, READY, RUNNING, SAFE, WAITING};
use core::time::Duration;
use kyocho_microprocess::Microprocess;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The threads of one system.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    started: Mutex<HashMap<u64, Arc<LispThread>>>,
    next_id: AtomicU64,
    stopping: AtomicBool,
    /// Microprocesses that wait until the world runs, or until a collection has ended.
    held: Mutex<Vec<Microprocess>>,
    /// For threads that wait on the native stack.
    resumed: Condvar,
    /// Held while code outside Lisp threads uses Lisp values.
    outsiders: Mutex<()>,
    /// The longest stop of the world since the last query.
    longest_stop_ns: AtomicU64,
}

impl Threads {
    /// A number that no other thread of the system has.
    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn register(&self, thread: &Arc<LispThread>) {
        lock(&self.started).insert(thread.id, Arc::clone(thread));
    }

    /// Removes a thread that has ended.
    pub(crate) fn unregister(&self, thread: &LispThread) {
        lock(&self.started).remove(&thread.id);
    }

    /// The started thread with this number.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<LispThread>> {
        lock(&self.started).get(&id).cloned()
    }

    pub(crate) fn started(&self) -> Vec<Arc<LispThread>> {
        let mut threads: Vec<_> = lock(&self.started).values().cloned().collect();
        threads.sort_unstable_by_key(|thread| thread.id);
        threads
    }

    /// Begins a step; `false` if the world is stopped. The step must then end, and the thread is
    /// unparked when the world runs.
    #[inline]
    pub(crate) fn enter(&self, thread: &LispThread) -> bool {
        loop {
            thread.state.store(RUNNING, Ordering::SeqCst);
            if !self.stopping.load(Ordering::SeqCst) {
                return true;
            }
            thread.state.store(READY, Ordering::Release);
            let mut held = lock(&self.held);
            if self.stopping.load(Ordering::SeqCst) {
                held.push(Microprocess::current());
                return false;
            }
        }
    }

    /// Ends a step. The thread is runnable, or waits.
    #[inline]
    pub(crate) fn leave(&self, thread: &LispThread, waits: bool) {
        thread.state.store(if waits { WAITING } else { READY }, Ordering::Release);
    }

    /// Registers the caller to be unparked after the next collection.
    pub(crate) fn hold(&self, microprocess: Microprocess) {
        lock(&self.held).push(microprocess);
    }

    /// Called when a thread returns from outside Lisp: waits until the world runs.
    pub(crate) fn return_from_outside(&self, thread: &LispThread) {
        loop {
            thread.state.store(RUNNING, Ordering::SeqCst);
            if !self.stopping.load(Ordering::SeqCst) {
                return;
            }
            thread.state.store(SAFE, Ordering::SeqCst);
            let mut held = lock(&self.held);
            while self.stopping.load(Ordering::SeqCst) {
                held = self.resumed.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Whether the world is stopped, or is being stopped.
    #[cfg(test)]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Unparks the threads that wait until the unreachable objects of a collection have been
    /// dropped.
    pub(crate) fn release(&self) {
        let held = core::mem::take(&mut *lock(&self.held));
        held.iter().for_each(Microprocess::unpark);
    }

    /// Runs `body`, which uses Lisp values outside any Lisp thread. No collection runs meanwhile.
    pub(crate) fn as_outsider<T>(&self, body: impl FnOnce() -> T) -> T {
        let _guard = lock(&self.outsiders);
        body()
    }

    /// Stops every thread, calls `collect` with all threads to trace, and lets them run again.
    pub(crate) fn stop_the_world<T>(&self, collect: impl FnOnce(&[Arc<LispThread>]) -> T) -> T {
        let _guard = lock(&self.outsiders);
        let _stopped = Stopped { threads: self, begin_ns: monotonic_ns() };
        self.stopping.store(true, Ordering::SeqCst);
        for thread in &self.started() {
            await_safepoint(thread);
        }
        // On their way to a safepoint, running threads may have started others, which wait. No
        // further ones can start.
        collect(&self.started())
    }

    /// The longest stop of the world since the last call, from the request to all threads until
    /// they may run again.
    pub(crate) fn take_longest_stop(&self) -> Duration {
        Duration::from_nanos(self.longest_stop_ns.swap(0, Ordering::Relaxed))
    }
}

/// Lets the world run again when dropped, even if the collector is killed while it waits.
struct Stopped<'a> {
    threads: &'a Threads,
    begin_ns: u64,
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let Self { threads, begin_ns } = *self;
        let mut held = lock(&threads.held);
        threads.stopping.store(false, Ordering::SeqCst);
        // Recorded before a thread that waits for the collection can run and query it.
        threads.longest_stop_ns.fetch_max(monotonic_ns() - begin_ns, Ordering::Relaxed);
        let resume = core::mem::take(&mut *held);
        drop(held);
        threads.resumed.notify_all();
        resume.iter().for_each(Microprocess::unpark);
    }
}

/// Waits until a thread is not running. The thread may be preempted, or blocked in the kernel, with
/// a lower priority than the caller. So the caller sleeps to let it run.
fn await_safepoint(thread: &LispThread) {
    let mut looks = 0;
    while thread.state.load(Ordering::SeqCst) == RUNNING {
        if let Some(microprocess) = thread.microprocess.get() {
            microprocess.poll_word().store(1, Ordering::Release);
        }
        looks += 1;
        if looks < LOOKS_AWAKE {
            core::hint::spin_loop();
        } else {
            kyocho_microprocess::sleep(NAP);
        }
    }
}

/// Checks of a running thread before the collector sleeps. A thread polls within less than a
/// microsecond.
const LOOKS_AWAKE: u32 = 200;
/// Duration of such a sleep.
const NAP: Duration = Duration::from_micros(50);
