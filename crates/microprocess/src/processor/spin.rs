//! Short locks between virtual processors. While only one of them is awake, such a lock costs a
//! load.
//!
//! **Invariant:** a holder of such a lock has events masked, or is a thread outside any runtime. So
//! the runtime never preempts it, and it neither suspends nor allocates before the release.

#![expect(unsafe_code, reason = "a lock around a cell")]

use core::hint::spin_loop;

use kyocho_sys::barrier;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::cell::UnsafeCell;

use crate::processor::vp::Vp;
use crate::protocol::bias::Bias;
use crate::protocol::pause::let_others_run;

/// Attempts before other threads are allowed to run: the holder may have lost its core.
const SPINS: u32 = 200;

/// The bias of the short locks.
static BIAS: Bias<Vp> = Bias::new();

/// Whether locks are taken: see [`bias`](crate::protocol::bias).
#[inline(always)]
pub(crate) fn is_needed() -> bool {
    BIAS.is_revoked()
}

/// `vp` wakes: from now on it may enter sections. Call as its holder, outside sections.
pub(crate) fn wake(vp: &'static Vp) {
    BIAS.enter(vp, barrier::everywhere);
}

/// `vp` falls asleep or ends: it enters no section before it wakes. Call as its holder, outside
/// sections.
pub(crate) fn rest(vp: &'static Vp) {
    BIAS.leave(vp);
}

/// A kernel thread outside any runtime calls the runtime: locks are taken from now on, for good.
#[cold]
pub(crate) fn require() {
    BIAS.enter_for_good(barrier::everywhere);
}

#[cfg(test)]
mod tests;

/// A lock word.
#[derive(Debug)]
pub(crate) struct SpinLock(AtomicBool);

impl SpinLock {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Takes the lock. Events must be masked.
    #[inline]
    pub(crate) fn acquire(&self) {
        if is_needed() {
            self.contend();
        }
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_acquire(&self) -> bool {
        !is_needed() || !self.0.swap(true, Ordering::Acquire)
    }

    pub(crate) fn contend(&self) {
        while self.0.swap(true, Ordering::Acquire) {
            self.await_release();
        }
    }

    #[cold]
    fn await_release(&self) {
        let mut spins = 0_u32;
        while self.0.load(Ordering::Relaxed) {
            spins += 1;
            if spins.is_multiple_of(SPINS) {
                let_others_run();
            }
            spin_loop();
        }
    }

    /// Releases the lock.
    #[inline]
    pub(crate) fn release(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A value behind a lock that is always taken, for data that several runtimes share.
pub(crate) struct AlwaysLock<T> {
    lock: SpinLock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock admits one thread at a time to the value.
unsafe impl<T: Send> Sync for AlwaysLock<T> {}

/// Access to the value of an [`AlwaysLock`].
pub(crate) struct AlwaysGuard<'a, T>(&'a AlwaysLock<T>);

impl<T> AlwaysLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: SpinLock::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the lock. Events must be masked, or the caller must be outside any runtime.
    pub(crate) fn acquire(&self) -> AlwaysGuard<'_, T> {
        self.lock.contend();
        AlwaysGuard(self)
    }
}

impl<T> core::ops::Deref for AlwaysGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> core::ops::DerefMut for AlwaysGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and `self` is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for AlwaysGuard<'_, T> {
    fn drop(&mut self) {
        self.0.lock.release();
    }
}
