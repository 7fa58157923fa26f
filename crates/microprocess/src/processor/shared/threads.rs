//! The kernel threads of a runtime: they are started, interrupted and joined here.

use core::mem;
use std::sync::{MutexGuard, PoisonError};

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::hint::spin_loop;
use kyocho_sys::prim::thread;

use super::Shared;
use crate::processor::kernel_thread::{Handle, KernelThread, Role};
use crate::processor::vp::Vp;

/// The most kernel threads of one runtime. This bounds how many microprocesses can sleep in the
/// kernel at a time.
pub(crate) const KERNEL_THREADS_MAX: u32 = 16_384;

/// How many kernel threads are checked in one call, which takes some 20 µs.
const STRAGGLERS_MAX: usize = 16;

/// How often to check for threads that look at a holder before the join is postponed.
const LOOKS_MAX: u32 = 16;

impl Shared {
    /// Appoints the first holder of `vp`; its kernel thread does not run yet. Allocates.
    pub(crate) fn appoint(vp: &'static Vp) -> &'static KernelThread {
        let holder = KernelThread::recycled();
        holder.give(vp);
        holder
    }

    /// Starts the kernel thread that was appointed as the holder of `vp`.
    ///
    /// # Errors
    /// The host permits no more threads.
    pub(crate) fn start_holder(
        &'static self,
        vp: &'static Vp,
        holder: &'static KernelThread,
    ) -> Result<(), Errno> {
        self.start(holder, vp, Role::Holder)
    }

    /// Starts a kernel thread for the pool of `vp`. Events must not be masked.
    ///
    /// # Errors
    /// The host permits no more threads, or the bound is reached.
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

    /// Whether there are kernel threads that sleep in the kernel without a virtual processor, or
    /// returned from it and have not called the runtime yet.
    pub(crate) fn sleep_in_kernel(&self) -> bool {
        self.in_kernel.load(Ordering::SeqCst) != 0
    }

    /// Interrupts kernel threads that returned from the kernel and do not call the runtime. Checks
    /// [`STRAGGLERS_MAX`] threads, beginning with number `start`; returns the number to begin with
    /// at the next call. Does nothing if no thread sleeps in the kernel.
    pub(crate) fn call_back_stragglers(&self, start: usize) -> usize {
        if self.in_kernel.load(Ordering::SeqCst) == 0 {
            return start;
        }
        // The list is in use: the next call tries again.
        let Ok(threads) = self.threads.try_lock() else { return start };
        let start = if start < threads.len() { start } else { 0 };
        let looked_at = threads.iter().skip(start).take(STRAGGLERS_MAX);
        start + looked_at.map(|handle| handle.thread().interrupt_straggler()).count()
    }

    /// Interrupts once more the kernel calls that are to end; returns whether there are any, or may
    /// be.
    pub(crate) fn call_back_again(&self) -> bool {
        // The list is in use: the next call tries again.
        let Ok(threads) = self.threads.try_lock() else { return true };
        let called = threads.iter().map(Handle::thread).filter(|thread| thread.is_called_back());
        called.map(KernelThread::interrupt_call).count() > 0
    }

    /// Joins all kernel threads except those that carry a microprocess without a virtual processor:
    /// these sleep, and nothing will wake them. Call after all virtual processors have stopped.
    /// Returns how many are left.
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

    /// Joins the kernel threads that have exited; returns `false` if some are left for a later
    /// call.
    ///
    /// A thread that has exited holds no virtual processor. So a look at a holder that begins from
    /// now on is a look at another thread. Earlier looks are over once there was, for each virtual
    /// processor, a moment without a look. Under load there is seldom such a moment for all virtual
    /// processors at once, and an unjoined thread keeps its descriptor.
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

/// Whether there is a moment in which no thread looks at the holder of `vp`. Does not wait for one:
/// the thread that looks may be of the lowest class and not run for seconds. Meanwhile the maker
/// must make threads.
fn has_no_looker(vp: &Vp) -> bool {
    let is_seen = || vp.taking.load(Ordering::SeqCst) || vp.looking.load(Ordering::SeqCst) != 0;
    (0..LOOKS_MAX).any(|_| {
        spin_loop();
        !is_seen()
    })
}
