//! Short locks between virtual processors, which cost a load while there is only one.
//!
//! While a single virtual processor runs in the whole process and nobody else calls us, masking events
//! already excludes everybody: a lock is then a load and a branch. The first runtime with several virtual
//! processors, or the first call from a kernel thread that belongs to no runtime, turns the locks on, for good.
//!
//! **Invariant:** a holder has events masked (or belongs to no runtime), so no preemption of ours delays it, and
//! it neither suspends nor allocates before the release.

#![expect(unsafe_code, reason = "a lock around a cell")]

use core::hint::spin_loop;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::cell::UnsafeCell;

use crate::reflection::let_others_run;

/// Whether locks exclude. Only ever turned on.
static NEEDED: AtomicBool = AtomicBool::new(false);

/// Attempts before the kernel is asked to run somebody else: the holder may have lost its core.
const SPINS: u32 = 200;

/// Whether locks are taken.
#[inline]
pub(crate) fn is_needed() -> bool {
    NEEDED.load(Ordering::Relaxed)
}

/// Turns the locks on. `settle` must return only once every section that was entered without
/// them has been left.
pub(crate) fn require(settle: impl FnOnce()) {
    if !NEEDED.swap(true, Ordering::SeqCst) {
        settle();
    }
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

    fn contend(&self) {
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

    /// Lets the next one in.
    #[inline]
    pub(crate) fn release(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A value behind a lock that is always taken: for what several runtimes share.
pub(crate) struct AlwaysLock<T> {
    lock: SpinLock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time to the value.
unsafe impl<T: Send> Sync for AlwaysLock<T> {}

/// Access to the value of an [`AlwaysLock`].
pub(crate) struct AlwaysGuard<'a, T>(&'a AlwaysLock<T>);

impl<T> AlwaysLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { lock: SpinLock::new(), value: UnsafeCell::new(value) }
    }

    /// Takes the lock. Events must be masked, or the caller be of no runtime.
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
