//! A lock that is taken at once or not at all.
#![expect(unsafe_code, reason = "hands out references to what the lock word protects")]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use kyocho_sys::prim::atomic::AtomicU32;
use kyocho_sys::prim::cell::UnsafeCell;

use crate::contract::{Refusal, TestAndSet};

/// A value that one thread at a time may use.
///
/// It has no waiting: a caller that finds it taken does something else, or yields and tries again.
pub struct TryLock<M, T> {
    mechanism: M,
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock word lets one user at a time access the value, on whatever thread.
unsafe impl<M: Send, T: Send> Send for TryLock<M, T> {}
// SAFETY: as above: a shared lock transfers the value between threads, so `T: Send` is enough.
unsafe impl<M: Sync, T: Send> Sync for TryLock<M, T> {}

impl<M: TestAndSet, T> TryLock<M, T> {
    /// A free lock.
    pub fn new(mechanism: M, value: T) -> Self {
        Self { mechanism, word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the lock. 1-2 ns with restartable sequences.
    ///
    /// # Errors
    /// [`Refusal::Busy`]: the lock is taken. [`Refusal::NotHeld`]: the calling thread does not hold
    /// the mechanism's virtual processor or CPU.
    #[inline]
    pub fn try_lock(&self) -> Result<TryLockGuard<'_, M, T>, Refusal> {
        if self.mechanism.test_and_set(&self.word)? {
            return Err(Refusal::Busy);
        }
        Ok(TryLockGuard { lock: self, value: PhantomData })
    }

    /// The value. The unique reference proves that no other thread uses it.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: a unique reference to the lock: no guard exists.
        unsafe { &mut *self.value.get() }
    }
}

impl<M: fmt::Debug, T> fmt::Debug for TryLock<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryLock").field("mechanism", &self.mechanism).finish_non_exhaustive()
    }
}

/// Access to the value. Dropping it releases the lock, on any kernel thread.
#[derive(Debug)]
#[must_use = "dropping the guard frees the lock"]
pub struct TryLockGuard<'a, M: TestAndSet, T> {
    lock: &'a TryLock<M, T>,
    /// Makes the guard `Send` and `Sync` as the reference that it yields.
    value: PhantomData<&'a mut T>,
}

impl<M: TestAndSet, T> Deref for TryLockGuard<'_, M, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard set the lock word, so there is no other guard.
        unsafe { &*self.lock.value.get() }
    }
}

impl<M: TestAndSet, T> DerefMut for TryLockGuard<'_, M, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed uniquely.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<M: TestAndSet, T> Drop for TryLockGuard<'_, M, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.mechanism.clear(&self.lock.word);
    }
}
