//! What the virtual processors of one runtime share.

use core::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::data::detection::Detection;
use crate::processor::dispatcher::Dispatcher;
use crate::processor::foreign_locks;
use crate::processor::kernel_thread::Handle;
use crate::processor::record::{Record, State};
use crate::processor::reflection::{Permissions, Reflection};
use crate::processor::requests::{MakerRequests, MonitorRequests};
use crate::processor::slot;
use crate::processor::space::Limits;
use crate::processor::vp::{NEVER_NS, Vp, attention};
use crate::protocol::tenure;

mod recycled;
mod threads;

pub(crate) use threads::KERNEL_THREADS_MAX;

/// How a run ended.
pub(crate) mod outcome {
    pub(crate) const RUNNING: u32 = 0;
    pub(crate) const FINISHED: u32 = 1;
    pub(crate) const DEADLOCK: u32 = 2;
}

/// The options with which a runtime was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) detection: Detection,
    pub(crate) limits: Limits,
    pub(crate) reflection: Reflection,
    pub(crate) permissions: Option<Permissions>,
    /// The number of virtual processors that run at the start.
    pub(crate) concurrency: usize,
}

/// The state that the virtual processors of one runtime share. Never freed: handles and records may
/// refer to it and to its virtual processors long after its run.
///
/// A later run with the same options reuses it if the earlier run left nothing that may come back.
/// So a process has as many with the same options as ran at the same time, and one more for each
/// run that left something.
pub(crate) struct Shared {
    vps: Vec<&'static Vp>,
    pub(crate) monitor: MonitorRequests,
    pub(crate) maker: MakerRequests,
    /// A value of [`outcome`]; a futex word.
    pub(crate) outcome: AtomicU32,
    pub(crate) stopping: AtomicBool,
    /// The number of virtual processors whose holders sleep because nothing is runnable.
    pub(crate) idle: AtomicU32,
    /// Advances whenever a virtual processor is about to become idle, or wakes.
    idle_changes: AtomicU64,
    /// The number of kernel threads that lost their virtual processor and have not come back since.
    in_kernel: AtomicU32,
    /// The number of sources outside the runtime that may wake a microprocess.
    outside: AtomicU32,
    pub(crate) kernel_threads: AtomicU32,
    /// The options with which the runtime was built.
    options: Options,
    pub(crate) detection: Detection,
    /// The CPUs to which its virtual processors are pinned; empty if they are not pinned.
    cpus: Mutex<Arc<[usize]>>,
    /// The number of virtual processors that run; the others are retired.
    concurrency: AtomicUsize,
    pub(crate) limits: Limits,
    pub(crate) reflection: Reflection,
    /// What the host permits for informing it of priorities; `None` if it is not informed.
    pub(crate) permissions: Option<Permissions>,
    /// Until when all virtual processors yield their CPUs because the process has used its share of
    /// CPU time.
    pub(crate) spent_until_ns: AtomicU64,
    /// The functions of higher layers that its virtual processors call.
    pub(crate) dispatcher: &'static Dispatcher,
    threads: Mutex<Vec<Handle>>,
}

impl Shared {
    fn new(count: usize, options: Options, dispatcher: &'static Dispatcher) -> &'static Self {
        let Options { detection, limits, reflection, permissions, concurrency } = options;
        let vps: Vec<&'static Vp> = (0..count)
            .map(|index| &*Box::leak(Box::new(Vp::new(index, ptr::null_mut()))))
            .collect();
        Box::leak(Box::new(Self {
            vps,
            monitor: MonitorRequests::new(),
            maker: MakerRequests::new(),
            outcome: AtomicU32::new(outcome::RUNNING),
            stopping: AtomicBool::new(false),
            idle: AtomicU32::new(0),
            idle_changes: AtomicU64::new(0),
            in_kernel: AtomicU32::new(0),
            outside: AtomicU32::new(0),
            kernel_threads: AtomicU32::new(0),
            options,
            detection,
            cpus: Mutex::new(Arc::new([])),
            concurrency: AtomicUsize::new(concurrency),
            limits,
            reflection,
            permissions,
            spent_until_ns: AtomicU64::new(0),
            dispatcher,
            threads: Mutex::new(Vec::new()),
        }))
    }

    /// Virtual processor `index`, if there is one and it is not retired.
    pub(crate) fn vp(&self, index: usize) -> Option<&'static Vp> {
        self.vps().get(index).copied().filter(|vp| !vp.is_retired())
    }

    /// Makes the first `count` virtual processors run and retires the others.
    pub(crate) fn set_concurrency(&self, count: usize) {
        self.concurrency.store(count, Ordering::SeqCst);
        self.vps.iter().for_each(|vp| vp.set_retired(vp.index >= count));
    }

    /// How many virtual processors run microprocesses.
    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency.load(Ordering::SeqCst)
    }

    #[inline]
    pub(crate) fn vps(&self) -> &[&'static Vp] {
        &self.vps
    }

    pub(crate) fn cpus(&self) -> Arc<[usize]> {
        Arc::clone(&lock(&self.cpus))
    }

    // ----- idling ------------------------------------------------------------------------------

    /// Called when a virtual processor is about to show that it is idle. The order matters: a
    /// thread that sees it idle must also see in `idle_changes` that it may have woken others.
    pub(crate) fn announce_idle(&self) {
        self.idle_changes.fetch_add(1, Ordering::SeqCst);
    }

    /// `vp` has nothing to do until `deadline_ns`, or until it is woken.
    pub(crate) fn enter_idle(&'static self, vp: &Vp, deadline_ns: Option<u64>) {
        vp.next_deadline_ns.store(deadline_ns.unwrap_or(NEVER_NS), Ordering::Release);
        self.idle.fetch_add(1, Ordering::SeqCst);
        if deadline_ns.is_none() {
            self.detect_deadlock();
        }
    }

    /// `vp` runs again. Its attention is no longer [`IDLE`](crate::processor::vp::attention::IDLE).
    pub(crate) fn leave_idle(&self, vp: &Vp) {
        self.idle.fetch_sub(1, Ordering::SeqCst);
        self.idle_changes.fetch_add(1, Ordering::SeqCst);
        vp.sentinel.wake();
        self.monitor.expect_work();
    }

    /// Asks the next busy virtual processor after `vp`, which has nothing to do, to share its work.
    pub(crate) fn ask_for_work(&self, vp: &Vp) {
        let others = self.vps().iter().cycle().skip(vp.index + 1).take(self.vps().len() - 1);
        if let Some(busy) = others.into_iter().find(|other| !other.is_idle() && !vp.is_retired()) {
            busy.alert(attention::SHARE);
        }
    }

    /// Ends the run if nothing runs, nothing is pending, and nothing is left that could change
    /// that.
    ///
    /// Virtual processors are checked one after the other. One that is not checked yet may wake one
    /// that was, and be idle when it is checked. Then it has advanced `idle_changes` in between.
    pub(crate) fn detect_deadlock(&'static self) {
        let before = self.idle_changes.load(Ordering::SeqCst);
        let nothing_comes = self.in_kernel.load(Ordering::SeqCst) == 0
            && self.outside.load(Ordering::SeqCst) == 0
            && !foreign_locks::holds_locks()
            && self.vps.iter().all(|vp| {
                vp.is_idle()
                    && vp.next_deadline_ns.load(Ordering::SeqCst) == NEVER_NS
                    && !vp.bell.awaits()
                    && vp.port().is_none_or(|port| !port.is_pending())
            });
        // The thread that suspended a microprocess may resume it.
        let nothing_comes = nothing_comes && !self.has_suspended();
        if nothing_comes && self.idle_changes.load(Ordering::SeqCst) == before {
            self.end(outcome::DEADLOCK);
        }
    }

    /// Called when a kernel thread has lost its virtual processor in the kernel.
    pub(crate) fn enter_kernel(&self) {
        self.in_kernel.fetch_add(1, Ordering::SeqCst);
    }

    /// Called when such a thread has come back and its microprocess has been posted.
    pub(crate) fn leave_kernel(&self) {
        self.in_kernel.fetch_sub(1, Ordering::SeqCst);
    }

    /// A source outside the runtime may wake a microprocess: there is no deadlock until
    /// [`forget_outside`](Self::forget_outside).
    pub(crate) fn expect_outside(&self) {
        self.outside.fetch_add(1, Ordering::SeqCst);
    }

    /// Such a source no longer exists.
    pub(crate) fn forget_outside(&'static self) {
        if self.outside.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.detect_deadlock();
        }
    }

    /// Called when a busy virtual processor has set a timer.
    pub(crate) fn expect_deadline(&self, deadline_ns: u64) {
        self.monitor.expect_deadline(deadline_ns);
    }

    // ----- ending ------------------------------------------------------------------------------

    /// Ends the run, unless it has ended already.
    pub(crate) fn end(&self, how: u32) {
        let running = outcome::RUNNING;
        if self.outcome.compare_exchange(running, how, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            futex::wake(&self.outcome, 1);
        }
    }

    /// Waits until the run has ended; returns its [`outcome`].
    pub(crate) fn await_end(&self) -> u32 {
        loop {
            match self.outcome.load(Ordering::SeqCst) {
                outcome::RUNNING => {
                    futex::wait(&self.outcome, outcome::RUNNING, None);
                }
                how => return how,
            }
        }
    }
}

/// The runtimes that run now.
static RUNTIMES: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtimes() -> MutexGuard<'static, Vec<&'static Shared>> {
    RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks all runs for deadlocks, after something that they could have waited for is gone. Events
/// must not be masked.
pub(crate) fn detect_deadlocks() {
    runtimes().iter().for_each(|shared| shared.detect_deadlock());
}

/// All runtimes that run now.
#[cfg(feature = "trace")]
pub(crate) fn all() -> Vec<&'static Shared> {
    runtimes().clone()
}

impl Shared {
    pub(crate) fn enlist(&'static self) {
        runtimes().push(self);
    }

    pub(crate) fn delist(&'static self) {
        runtimes().retain(|shared| !ptr::eq(*shared, self));
    }
}

impl Shared {
    /// Whether one of its microprocesses is suspended.
    #[cold]
    pub(crate) fn has_suspended(&'static self) -> bool {
        self.records()
            .any(|record| record.orders.is_suspended() && record.state.get() != State::Finished)
    }

    /// The records of its microprocesses.
    pub(crate) fn records(&'static self) -> impl Iterator<Item = &'static Record> {
        self.records_in(|state| state != State::Free)
    }

    /// Takes the records of its microprocesses that have not finished and never run again: their
    /// ids end. Leaves out those that are bound to a kernel thread. Call after all virtual
    /// processors have stopped.
    ///
    /// A finished one is left to its handle, which may be in use outside the run.
    pub(crate) fn take_records(&'static self) -> impl Iterator<Item = &'static Record> {
        let unfinished = |state| !matches!(state, State::Free | State::Finished);
        let idle = self.records_in(unfinished).filter(|record| record.bound.get().is_none());
        idle.filter(|record| record.abandon())
    }

    fn records_in(
        &'static self,
        is_used: impl Fn(State) -> bool,
    ) -> impl Iterator<Item = &'static Record> {
        slot::all().filter(move |record| {
            let is_ours = || {
                let home = record.home.address();
                self.vps().iter().any(|vp| ptr::eq(*vp, home))
            };
            // A former run with the same virtual processors may have left records. Abandoned ones
            // have no id, and finished ones do not matter to the callers.
            let has_id = || record.id() != tenure::NO_ID;
            tenure::is_of_run(|| is_used(record.state.get()), is_ours) && has_id()
        })
    }
}
