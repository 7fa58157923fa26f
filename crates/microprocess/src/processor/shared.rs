//! What the virtual processors of one runtime share.

use core::{mem, ptr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kyocho_sys::prim::hint::spin_loop;
use kyocho_sys::prim::thread;

use crate::data::detection::Detection;
use crate::processor::dispatcher::Dispatcher;
use crate::processor::foreign_locks;
use crate::processor::kernel_thread::{ANY_CPU, Handle, KernelThread, Role};
use crate::processor::record::{Record, State};
use crate::processor::reflection::{Means, Reflection};
use crate::processor::requests::{MakerRequests, MonitorRequests};
use crate::processor::slot;
use crate::processor::space::Limits;
use crate::processor::vp::{NEVER_NS, Vp, attention};
use crate::protocol::tenure;

/// Most kernel threads of one runtime: as many microprocesses can sleep in the kernel at a time.
pub(crate) const KERNEL_THREADS_MAX: u32 = 16_384;

/// Kernel threads that are looked at in one go: some 20 µs.
const STRAGGLERS_MAX: usize = 16;

/// How often to see whether anybody looks at a holder before it is put off.
const LOOKS_MAX: u32 = 16;

/// How a run ended.
pub(crate) mod outcome {
    pub(crate) const RUNNING: u32 = 0;
    pub(crate) const FINISHED: u32 = 1;
    pub(crate) const DEADLOCK: u32 = 2;
}

/// How a runtime was asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) detection: Detection,
    pub(crate) limits: Limits,
    pub(crate) reflection: Reflection,
    pub(crate) means: Option<Means>,
    /// How many virtual processors run to begin with.
    pub(crate) concurrency: usize,
}

/// What the virtual processors of one runtime share. Lives for ever: handles and records may refer
/// to it and to its virtual processors long after its run. A later run of the same kind gets it, if
/// the earlier one left nothing that may come back. So a process has as many of a kind as ran side
/// by side, and one more for each run that left something.
pub(crate) struct Shared {
    vps: Vec<&'static Vp>,
    pub(crate) monitor: MonitorRequests,
    pub(crate) maker: MakerRequests,
    /// A value of [`outcome`]; a futex word.
    pub(crate) outcome: AtomicU32,
    pub(crate) stopping: AtomicBool,
    /// Virtual processors whose holders sleep for want of work.
    pub(crate) idle: AtomicU32,
    /// Advances whenever one is about to fall idle, or wakes.
    idle_changes: AtomicU64,
    /// Kernel threads that lost their virtual processor and have not asked for one since.
    in_kernel: AtomicU32,
    /// Sources outside the runtime that may yet wake somebody.
    outside: AtomicU32,
    pub(crate) kernel_threads: AtomicU32,
    /// How it was asked to be.
    options: Options,
    pub(crate) detection: Detection,
    /// The CPUs its virtual processors may be pinned to; none where they are not pinned.
    cpus: Mutex<Arc<[usize]>>,
    /// How many virtual processors run; the others are retired.
    concurrency: AtomicUsize,
    pub(crate) limits: Limits,
    pub(crate) reflection: Reflection,
    /// What may be told to the host of priorities.
    pub(crate) means: Option<Means>,
    /// Until when all of them stand aside, since the process has used its share of CPU time.
    pub(crate) spent_until_ns: AtomicU64,
    /// What the layers above do for its processors.
    pub(crate) dispatcher: &'static Dispatcher,
    threads: Mutex<Vec<Handle>>,
}

impl Shared {
    /// A runtime with `count` virtual processors, not yet running: one that has ended, or a new
    /// one.
    ///
    /// `cpus` are those its virtual processors are pinned to, in turn; none when it is empty.
    pub(crate) fn take(
        count: usize,
        cpus: Vec<usize>,
        options: Options,
        dispatcher: &'static Dispatcher,
    ) -> &'static Self {
        let suits = |ended: &&'static Self| {
            ended.vps.len() == count
                && ended.options == options
                && ptr::eq(ended.dispatcher, dispatcher)
        };
        let ended = {
            let mut ended = lock(&ENDED);
            ended.iter().position(suits).map(|at| ended.swap_remove(at))
        };
        let shared = match ended {
            Some(ended) => {
                ended.renew();
                ended
            }
            None => Self::new(count, options, dispatcher),
        };
        for vp in &shared.vps {
            let cpu = cpus.get(vp.index % cpus.len().max(1));
            vp.belong_to(shared, cpu.copied().unwrap_or(ANY_CPU));
        }
        *lock(&shared.cpus) = cpus.into();
        shared.set_concurrency(options.concurrency);
        shared
    }

    fn new(count: usize, options: Options, dispatcher: &'static Dispatcher) -> &'static Self {
        let Options { detection, limits, reflection, means, concurrency } = options;
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
            means,
            spent_until_ns: AtomicU64::new(0),
            dispatcher,
            threads: Mutex::new(Vec::new()),
        }))
    }

    /// Makes it as it was at first. Its run has ended, and left nothing.
    ///
    /// `idle_changes` goes on: a look for deadlocks that began in the former run must not take one
    /// moment of the former run and one of the next for the same.
    fn renew(&'static self) {
        self.vps.iter().for_each(|vp| vp.renew());
        self.monitor.renew();
        self.maker.renew();
        self.outcome.store(outcome::RUNNING, Ordering::SeqCst);
        self.stopping.store(false, Ordering::SeqCst);
        self.idle.store(0, Ordering::SeqCst);
        self.kernel_threads.store(0, Ordering::SeqCst);
        self.spent_until_ns.store(0, Ordering::SeqCst);
    }

    /// Keeps the shared part of a run that could not begin: it is never used again.
    pub(crate) fn keep(&'static self) {
        lock(&LEFT).push(self);
    }

    /// Lets another run have the shared part of this one, which has stopped and left `threads_left`
    /// kernel threads that carry microprocesses.
    ///
    /// It is never used again if something can come back to it: a kernel thread, which would be
    /// taken for one of the next run, or a promise of a wake from outside, which would be counted
    /// there.
    pub(crate) fn put_back(&'static self, threads_left: usize) {
        let may_come_back = threads_left != 0
            || self.in_kernel.load(Ordering::SeqCst) != 0
            || self.outside.load(Ordering::SeqCst) != 0;
        lock(if may_come_back { &LEFT } else { &ENDED }).push(self);
    }

    /// Virtual processor `index`, if it runs.
    pub(crate) fn vp(&self, index: usize) -> Option<&'static Vp> {
        self.vps().get(index).copied().filter(|vp| !vp.is_retired())
    }

    /// Lets the first `count` virtual processors run.
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

    /// The first holder of `vp`, which does not run yet. Allocates.
    pub(crate) fn appoint(vp: &'static Vp) -> &'static KernelThread {
        let holder = KernelThread::recycled();
        holder.give(vp);
        holder
    }

    /// Starts the kernel thread that was appointed to hold `vp`.
    ///
    /// # Errors
    /// The kernel gives no more threads.
    pub(crate) fn start_holder(
        &'static self,
        vp: &'static Vp,
        holder: &'static KernelThread,
    ) -> Result<(), Errno> {
        self.start(holder, vp, Role::Holder)
    }

    /// Starts a kernel thread for the pool of `vp`. Not with events masked.
    ///
    /// # Errors
    /// The kernel gives no more threads, or the bound is reached.
    pub(crate) fn start_spare(&'static self, vp: &'static Vp) -> Result<(), Errno> {
        if self.kernel_threads.load(Ordering::Relaxed) >= KERNEL_THREADS_MAX {
            return Err(Errno::AGAIN);
        }
        vp.starting.fetch_add(1, Ordering::SeqCst);
        self.start(KernelThread::recycled(), vp, Role::Spare).inspect_err(|_| {
            vp.starting.fetch_sub(1, Ordering::SeqCst);
        })
    }

    fn start(
        &'static self,
        thread: &'static KernelThread,
        vp: &'static Vp,
        role: Role,
    ) -> Result<(), Errno> {
        let handle = thread.start(vp, role)?;
        self.kernel_threads.fetch_add(1, Ordering::Relaxed);
        self.threads().push(handle);
        Ok(())
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether kernel threads sleep in the kernel without a processor, or came out of it and have not called us.
    pub(crate) fn sleep_in_kernel(&self) -> bool {
        self.in_kernel.load(Ordering::SeqCst) != 0
    }

    /// Calls back kernel threads that came out of the kernel and do not call us; looks at [`STRAGGLERS_MAX`] from number `start` on. Where to go on
    /// the next time. Nothing sleeps in the kernel: nothing to do.
    pub(crate) fn call_back_stragglers(&self, start: usize) -> usize {
        if self.in_kernel.load(Ordering::SeqCst) == 0 {
            return start;
        }
        // Somebody adds or takes one: next time.
        let Ok(threads) = self.threads.try_lock() else { return start };
        let start = if start < threads.len() { start } else { 0 };
        let looked_at = threads.iter().skip(start).take(STRAGGLERS_MAX);
        start + looked_at.map(|handle| handle.thread().interrupt_straggler()).count()
    }

    /// Interrupts the kernel calls of all who are called back from them once more; whether there is any.
    pub(crate) fn call_back_again(&self) -> bool {
        // Somebody adds or takes one: next time.
        let Ok(threads) = self.threads.try_lock() else { return true };
        let called = threads.iter().map(Handle::thread).filter(|thread| thread.is_called_back());
        called.map(KernelThread::interrupt_call).count() > 0
    }

    // ----- idling ------------------------------------------------------------------------------

    /// A virtual processor is about to show that it is idle.
    ///
    /// Before it does: what it woke is to show in `idle_changes` to whoever sees it idle.
    pub(crate) fn announce_idle(&self) {
        self.idle_changes.fetch_add(1, Ordering::SeqCst);
    }

    /// `vp` has nothing to do until `deadline_ns`.
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

    /// `vp` has nothing to do: asks the next busy one after it to share.
    pub(crate) fn ask_for_work(&self, vp: &Vp) {
        let others = self.vps().iter().cycle().skip(vp.index + 1).take(self.vps().len() - 1);
        if let Some(busy) = others.into_iter().find(|other| !other.is_idle() && !vp.is_retired()) {
            busy.alert(attention::SHARE);
        }
    }

    /// Ends the run if nothing runs, nothing is under way, and nobody is left to change that.
    ///
    /// Virtual processors are looked at one after the other. One that was not looked at yet may
    /// wake one that was, and be idle when its turn comes; then it has advanced `idle_changes` in
    /// between.
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
        // Whoever suspended one may let it go on.
        let nothing_comes = nothing_comes && !self.has_suspended();
        if nothing_comes && self.idle_changes.load(Ordering::SeqCst) == before {
            self.end(outcome::DEADLOCK);
        }
    }

    /// A kernel thread lost its virtual processor in the kernel.
    pub(crate) fn enter_kernel(&self) {
        self.in_kernel.fetch_add(1, Ordering::SeqCst);
    }

    /// It came back, and its microprocess has been posted.
    pub(crate) fn leave_kernel(&self) {
        self.in_kernel.fetch_sub(1, Ordering::SeqCst);
    }

    /// Somebody outside the runtime may wake a microprocess: no deadlock until [`forget_outside`](Self::forget_outside).
    pub(crate) fn expect_outside(&self) {
        self.outside.fetch_add(1, Ordering::SeqCst);
    }

    /// One such source is gone.
    pub(crate) fn forget_outside(&'static self) {
        if self.outside.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.detect_deadlock();
        }
    }

    /// A busy virtual processor set a timer.
    pub(crate) fn expect_deadline(&self, deadline_ns: u64) {
        self.monitor.expect_deadline(deadline_ns);
    }

    // ----- ending ------------------------------------------------------------------------------

    /// Ends the run, if nobody has yet.
    pub(crate) fn end(&self, how: u32) {
        let running = outcome::RUNNING;
        if self.outcome.compare_exchange(running, how, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            futex::wake(&self.outcome, 1);
        }
    }

    /// Waits until the run has ended; how.
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

    /// Joins every kernel thread but those that carry a microprocess without a virtual processor: they sleep, and nobody
    /// will wake them. All virtual processors have stopped. Returns how many are left.
    pub(crate) fn join_threads(&self) -> usize {
        let mut left = 0;
        for handle in mem::take(&mut *self.threads()) {
            let thread = handle.thread();
            while !thread.has_ended() && !thread.is_stranded() {
                let take = |vp: &&Vp| vp.pool.take().or_else(|| vp.pool.take_reserve());
                self.vps.iter().filter_map(take).for_each(KernelThread::dismiss);
                thread::yield_now();
            }
            if thread.is_stranded() {
                handle.forget();
                left += 1;
            } else {
                handle.join();
            }
        }
        left
    }
}

impl Shared {
    /// Joins the kernel threads that have exited; whether none of them is left for another time.
    ///
    /// Who has exited holds no virtual processor, so whoever begins to look at a holder from now on looks at another. Those who looked before
    /// are done once there was a moment, for each virtual processor, in which nobody did. All processors at once seldom have one
    /// under load, and an unjoined thread keeps its descriptor.
    pub(crate) fn join_finished(&self) -> bool {
        let (ended, others): (Vec<Handle>, Vec<Handle>) = mem::take(&mut *self.threads())
            .into_iter()
            .partition(|handle| handle.thread().has_ended());
        self.threads().extend(others);
        if !ended.is_empty() && !self.vps.iter().all(|vp| has_no_looker(vp)) {
            self.threads().extend(ended);
            return false;
        }
        self.kernel_threads.fetch_sub(ended.len() as u32, Ordering::Relaxed);
        ended.into_iter().for_each(Handle::join);
        true
    }
}

/// Whether there is a moment in which nobody looks at the holder of `vp`. Not waited for: whoever looks may be of the lowest class, and get no turn for
/// seconds, in which the maker must make threads.
fn has_no_looker(vp: &Vp) -> bool {
    let is_seen = || vp.taking.load(Ordering::SeqCst) || vp.looking.load(Ordering::SeqCst) != 0;
    (0..LOOKS_MAX).any(|_| {
        spin_loop();
        !is_seen()
    })
}

/// The runtimes that run.
static RUNTIMES: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());
/// Shared parts of runs that have ended, for the next runs.
static ENDED: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());
/// Those that something may come back to: they are never used again. A tool that looks for lost
/// memory finds them here.
static LEFT: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtimes() -> MutexGuard<'static, Vec<&'static Shared>> {
    RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the runs that are in a deadlock: something that all waited for is gone. Not with events masked.
pub(crate) fn detect_deadlocks() {
    runtimes().iter().for_each(|shared| shared.detect_deadlock());
}

/// All of them.
pub(crate) fn all() -> Vec<&'static Shared> {
    runtimes().clone()
}

impl Shared {
    pub(crate) fn enlist(&'static self) {
        runtimes().push(self);
    }

    pub(crate) fn strike(&'static self) {
        runtimes().retain(|shared| !ptr::eq(*shared, self));
    }
}

impl Shared {
    /// Whether one of its microprocesses is told to stand still.
    #[cold]
    pub(crate) fn has_suspended(&'static self) -> bool {
        self.records()
            .any(|record| record.orders.is_suspended() && record.state.get() != State::Finished)
    }

    /// The records of its microprocesses.
    pub(crate) fn records(&'static self) -> impl Iterator<Item = &'static Record> {
        self.records_in(|state| state != State::Free)
    }

    /// The records of its microprocesses that have not finished and never run again: their ids end. Not those that are bound to
    /// a kernel thread. All virtual processors have stopped.
    ///
    /// A finished one is left to its handle, which may be in use outside of the run.
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
            // A former run with the same virtual processors may have left records: those that were
            // abandoned have no id, and finished ones are of no interest to the callers.
            let is_anybodys = || record.id() != tenure::NOBODY;
            tenure::is_of_run(|| is_used(record.state.get()), is_ours) && is_anybodys()
        })
    }
}
