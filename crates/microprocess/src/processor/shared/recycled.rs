//! The reuse of the shared parts of runs that have ended.

use core::ptr;
use std::sync::Mutex;

use kyocho_sys::prim::atomic::Ordering;

use super::{Options, Shared, lock, outcome};
use crate::processor::dispatcher::Dispatcher;
use crate::processor::kernel_thread::ANY_CPU;

/// Shared parts of runs that have ended, for use by later runs.
static ENDED: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());
/// Shared parts to which something may come back. They are never used again. A leak detector finds
/// them here.
static LEFT: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());

impl Shared {
    /// The shared part for a run with `count` virtual processors that has not begun: that of a run
    /// that has ended, or a new one.
    ///
    /// The virtual processors are pinned to `cpus`, in turn; they are not pinned if `cpus` is
    /// empty.
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

    /// Resets the shared part of a run that has ended and left nothing.
    ///
    /// `idle_changes` is not reset. A check for deadlocks that began in the former run must not
    /// mistake a moment of the next run for one of the former.
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

    /// Keeps the shared part of a run that could not begin. It is never used again.
    pub(crate) fn keep(&'static self) {
        lock(&LEFT).push(self);
    }

    /// Makes the shared part of this run, which has stopped, available to another run.
    /// `threads_left` is the number of kernel threads left that carry microprocesses.
    ///
    /// The shared part is never used again if something may come back to it. That may be a kernel
    /// thread, which the next run would take for its own. Or it may be a promised wake from
    /// outside, which the next run would count.
    pub(crate) fn put_back(&'static self, threads_left: usize) {
        let may_come_back = threads_left != 0
            || self.in_kernel.load(Ordering::SeqCst) != 0
            || self.outside.load(Ordering::SeqCst) != 0;
        lock(if may_come_back { &LEFT } else { &ENDED }).push(self);
    }
}
