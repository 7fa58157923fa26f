//! What the virtual processors of one runtime share.

use core::ptr;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use kyocho_sys::prim::thread::{self, JoinHandle};
use kyocho_sys::scheduling::set_timer_slack_ns;
use kyocho_sys::signal::AlternateStack;
use kyocho_sys::task::{SystemCallReader, ThreadId};
use kyocho_sys::thread::start;
use kyocho_sys::{barrier, futex};

use crate::kernel_thread::{ANY_CPU, KernelThread};
use crate::monitor::Monitor;
use crate::runtime::Detection;
use crate::spin;
use crate::vp::{NEVER_NS, Vp};

/// Base stacks: step functions run on them. Untouched pages cost nothing.
const BASE_STACK_BYTES: usize = 8 << 20;

/// Most kernel threads of one runtime: as many microprocesses can sleep in the kernel at a time.
pub(crate) const KERNEL_THREADS_MAX: u32 = 16_384;

/// Stack of signal handlers: a preempted microprocess may wait there.
const HANDLER_STACK_BYTES: usize = 64 << 10;

/// What a kernel thread starts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It holds the virtual processor.
    Holder,
    /// It waits for one.
    Spare,
}

/// How a run ended.
pub(crate) mod outcome {
    pub(crate) const RUNNING: u32 = 0;
    pub(crate) const FINISHED: u32 = 1;
    pub(crate) const DEADLOCK: u32 = 2;
}

/// What the virtual processors of one runtime share. Lives for ever.
pub(crate) struct Shared {
    vps: Vec<&'static Vp>,
    pub(crate) monitor: Monitor,
    /// A value of [`outcome`]; a futex word.
    pub(crate) outcome: AtomicU32,
    pub(crate) stopping: AtomicBool,
    /// Virtual processors whose holders sleep for want of work.
    pub(crate) idle: AtomicU32,
    /// Advances whenever one falls idle or wakes.
    idle_changes: AtomicU64,
    /// Kernel threads that lost their virtual processor and have not asked for one since.
    in_kernel: AtomicU32,
    /// Sources outside the runtime that may yet wake somebody.
    outside: AtomicU32,
    pub(crate) kernel_threads: AtomicU32,
    pub(crate) detection: Detection,
    threads: Mutex<Vec<(&'static KernelThread, JoinHandle<()>)>>,
}

impl Shared {
    /// A runtime with `count` virtual processors, not yet running.
    ///
    /// `cpus` are those its virtual processors are pinned to, in turn; none when it is empty.
    pub(crate) fn new(count: usize, cpus: &[usize], detection: Detection) -> &'static Self {
        let vps: Vec<&'static Vp> = (0..count)
            .map(|index| &*Box::leak(Box::new(Vp::new(index, ptr::null_mut()))))
            .collect();
        let shared = &*Box::leak(Box::new(Self {
            vps,
            monitor: Monitor::new(),
            outcome: AtomicU32::new(outcome::RUNNING),
            stopping: AtomicBool::new(false),
            idle: AtomicU32::new(0),
            idle_changes: AtomicU64::new(0),
            in_kernel: AtomicU32::new(0),
            outside: AtomicU32::new(0),
            kernel_threads: AtomicU32::new(0),
            detection,
            threads: Mutex::new(Vec::new()),
        }));
        for vp in &shared.vps {
            let cpu = cpus.get(vp.index % cpus.len().max(1));
            vp.belong_to(shared, cpu.copied().unwrap_or(ANY_CPU));
        }
        if count > 1 {
            require_locks();
        }
        shared
    }

    #[inline]
    pub(crate) fn vps(&self) -> &[&'static Vp] {
        &self.vps
    }

    /// Starts a kernel thread for `vp`: its holder, or one for its pool. Not with events masked.
    ///
    /// # Errors
    /// The kernel gives no more threads, or the bound is reached.
    pub(crate) fn start_thread(&'static self, vp: &'static Vp, role: Role) -> Result<(), Errno> {
        if self.kernel_threads.load(Ordering::Relaxed) >= KERNEL_THREADS_MAX {
            return Err(Errno::AGAIN);
        }
        let record = &*Box::leak(Box::new(KernelThread::new(ptr::null_mut())));
        if role == Role::Holder {
            record.give(vp);
        }
        if role == Role::Spare {
            vp.starting.fetch_add(1, Ordering::SeqCst);
        }
        let started = start("microprocesses", BASE_STACK_BYTES, move || {
            record.become_current(SystemCallReader::open(ThreadId::current()).ok());
            record.pin(vp.cpu());
            // An idle holder sleeps until its earliest timer. Refused: 50 µs longer.
            let _late = set_timer_slack_ns(1);
            // Without one, a stack overflow ends the process without a word.
            let _stack = AlternateStack::install(HANDLER_STACK_BYTES).ok();
            if role == Role::Spare {
                vp.pool.put(record);
                vp.starting.fetch_sub(1, Ordering::SeqCst);
            }
            crate::dispatch::run(record);
        });
        if started.is_err() && role == Role::Spare {
            vp.starting.fetch_sub(1, Ordering::SeqCst);
        }
        self.kernel_threads.fetch_add(1, Ordering::Relaxed);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push((record, started?));
        Ok(())
    }

    // ----- idling ------------------------------------------------------------------------------

    /// `vp` has nothing to do until `deadline_ns`.
    pub(crate) fn enter_idle(&self, vp: &Vp, deadline_ns: Option<u64>) {
        vp.next_deadline_ns.store(deadline_ns.unwrap_or(NEVER_NS), Ordering::Release);
        self.idle.fetch_add(1, Ordering::SeqCst);
        self.idle_changes.fetch_add(1, Ordering::SeqCst);
        if deadline_ns.is_none() {
            self.detect_deadlock();
        }
    }

    /// `vp` runs again. Its attention is no longer [`IDLE`](crate::vp::attention::IDLE).
    pub(crate) fn leave_idle(&self, vp: &Vp) {
        self.idle.fetch_sub(1, Ordering::SeqCst);
        self.idle_changes.fetch_add(1, Ordering::SeqCst);
        vp.sentinel.wake();
        self.monitor.expect_work();
    }

    /// Ends the run if nothing runs, nothing is under way, and nobody is left to change that.
    ///
    /// Virtual processors are looked at one after the other; a wake from one that was not yet looked at to one that was shows
    /// in `idle_changes`.
    pub(crate) fn detect_deadlock(&self) {
        let before = self.idle_changes.load(Ordering::SeqCst);
        let nothing_comes = self.in_kernel.load(Ordering::SeqCst) == 0
            && self.outside.load(Ordering::SeqCst) == 0
            && self.vps.iter().all(|vp| {
                vp.is_idle()
                    && vp.next_deadline_ns.load(Ordering::SeqCst) == NEVER_NS
                    && vp.port().is_none_or(|port| !port.is_pending())
            });
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
    pub(crate) fn forget_outside(&self) {
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
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = 0;
        for (record, handle) in mem::take(&mut *threads) {
            while !handle.is_finished() && !record.is_stranded() {
                for pooled in self.vps.iter().filter_map(|vp| vp.pool.take()) {
                    pooled.dismiss();
                }
                thread::yield_now();
            }
            if record.is_stranded() {
                left += 1;
                continue;
            }
            assert!(handle.join().is_ok(), "the base does not panic");
            record.close_reader();
        }
        left
    }
}

impl Shared {
    /// Joins the kernel threads that have exited.
    pub(crate) fn join_finished(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let (finished, others) =
            mem::take(&mut *threads).into_iter().partition(|(_, handle)| handle.is_finished());
        *threads = others;
        let finished: Vec<(&KernelThread, JoinHandle<()>)> = finished;
        // Whoever still looks at one of them does so while it takes a processor.
        for vp in &self.vps {
            while vp.taking.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
        for (record, handle) in finished {
            assert!(handle.join().is_ok(), "the base does not panic");
            record.close_reader();
            self.kernel_threads.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The runtimes that run.
static RUNTIMES: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());

fn runtimes() -> MutexGuard<'static, Vec<&'static Shared>> {
    RUNTIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn enlist(&'static self) {
        runtimes().push(self);
    }

    pub(crate) fn strike(&self) {
        runtimes().retain(|shared| !ptr::eq(*shared, self));
    }
}

/// Makes the short locks exclude, from now on: somebody else than a single virtual processor calls us.
#[cold]
pub(crate) fn require_locks() {
    spin::require(|| {
        barrier::everywhere();
        for vp in runtimes().iter().flat_map(|shared| &shared.vps) {
            // Sections are short: wait for a moment outside of any.
            while vp.stopped.load(Ordering::SeqCst) == 0
                && !vp.is_idle()
                && vp.holder().mask.load(Ordering::SeqCst) != 0
            {
                thread::yield_now();
            }
        }
    });
}
