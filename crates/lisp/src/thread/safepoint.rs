//! Who runs, and stopping them all: the world stops for a collection.
//!
//! ```text
//! thread:    state = RUNNING; fence; stopping? -> wait        (Dekker: one of the two sees the other)
//! collector: stopping = true; fence; state == RUNNING? -> set its poll word, yield, look again
//! ```
//!
//! A thread in a raw kernel call, or in long work that needs no Lisp value, is `SAFE`: the collector does not wait for it, and it
//! waits for the collector when it comes back.

use crate::system::kernel::lock;
use crate::thread::lisp_thread::{LispThread, RUNNING, SAFE, STANDING, WAITING};
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
    /// Microprocesses that wait until the world goes on.
    held: Mutex<Vec<Microprocess>>,
    /// For those that wait on the host's stack.
    resumed: Condvar,
    /// Held while somebody who is no Lisp thread has values in his hands.
    outsiders: Mutex<()>,
    /// The longest time that the world was stopped since somebody asked.
    longest_stop_ns: AtomicU64,
}

impl Threads {
    /// A number no other thread of the system has.
    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn register(&self, thread: &Arc<LispThread>) {
        lock(&self.started).insert(thread.id, Arc::clone(thread));
    }

    /// A thread has ended.
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

    /// Begins a step; `false` where the world is stopped: the step must end, and the thread is
    /// unparked when the world goes on.
    #[inline]
    pub(crate) fn enter(&self, thread: &LispThread) -> bool {
        loop {
            thread.state.store(RUNNING, Ordering::SeqCst);
            if !self.stopping.load(Ordering::SeqCst) {
                return true;
            }
            thread.state.store(STANDING, Ordering::Release);
            let mut held = lock(&self.held);
            if self.stopping.load(Ordering::SeqCst) {
                held.push(Microprocess::current());
                return false;
            }
        }
    }

    /// Ends a step; the thread may run on, or waits.
    #[inline]
    pub(crate) fn leave(&self, thread: &LispThread, waits: bool) {
        thread.state.store(if waits { WAITING } else { STANDING }, Ordering::Release);
    }

    /// The caller will be unparked after the next collection.
    pub(crate) fn hold(&self, microprocess: Microprocess) {
        lock(&self.held).push(microprocess);
    }

    /// A thread that was outside comes back: waits for the world.
    pub(super) fn come_back(&self, thread: &LispThread) {
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

    /// Whether somebody has stopped the world, or is about to.
    #[cfg(test)]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Unparks those who wait for what a collection has found to be dropped.
    pub(crate) fn release(&self) {
        let held = core::mem::take(&mut *lock(&self.held));
        held.iter().for_each(Microprocess::unpark);
    }

    /// Runs `body`, which handles Lisp values outside any Lisp thread: no collection meanwhile.
    pub(crate) fn as_outsider<T>(&self, body: impl FnOnce() -> T) -> T {
        let _guard = lock(&self.outsiders);
        body()
    }

    /// Stops every thread, lets `collect` run with all of them to trace, and lets them go on.
    pub(crate) fn stop_the_world<T>(&self, collect: impl FnOnce(&[Arc<LispThread>]) -> T) -> T {
        let _guard = lock(&self.outsiders);
        let _stopped = Stopped { threads: self, begin_ns: monotonic_ns() };
        self.stopping.store(true, Ordering::SeqCst);
        for thread in &self.started() {
            await_safepoint(thread);
        }
        // Those that ran have started others on their way to a safepoint, which stand: nobody starts any more.
        collect(&self.started())
    }

    /// The longest time since the last call that the world was stopped, from the request to all
    /// threads until they may run again.
    pub(crate) fn take_longest_stop(&self) -> Duration {
        Duration::from_nanos(self.longest_stop_ns.swap(0, Ordering::Relaxed))
    }
}

/// Lets the world go on, also where the collector is killed while it waits.
struct Stopped<'a> {
    threads: &'a Threads,
    begin_ns: u64,
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let Self { threads, begin_ns } = *self;
        let mut held = lock(&threads.held);
        threads.stopping.store(false, Ordering::SeqCst);
        // Recorded before a thread that waits for the collection can run and ask for it.
        threads.longest_stop_ns.fetch_max(monotonic_ns() - begin_ns, Ordering::Relaxed);
        let resume = core::mem::take(&mut *held);
        drop(held);
        threads.resumed.notify_all();
        resume.iter().for_each(Microprocess::unpark);
    }
}

/// Waits until a thread does not run. It may be preempted, or blocked in the kernel, and less urgent
/// than the caller: the caller gives way by sleeping.
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

/// Looks at a running thread before the collector sleeps: a poll is less than a microsecond away.
const LOOKS_AWAKE: u32 = 200;
/// How long it sleeps then.
const NAP: Duration = Duration::from_micros(50);
