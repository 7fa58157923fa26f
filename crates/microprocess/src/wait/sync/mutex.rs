//! Mutual exclusion.
#![expect(unsafe_code, reason = "gives access to the data that the lock protects")]

use core::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    time::Duration,
};
use std::sync::{LockResult, TryLockError, TryLockResult};

use kyocho_sys::prim::cell::UnsafeCell;

use super::{poison::Poison, raw_mutex::RawMutex};
use crate::schedule::guarded::Deadline;

/// A lock around a value for microprocesses, with the interface of [`std::sync::Mutex`].
///
/// When it is released, it goes to the first waiter: highest priority first, FIFO among equals. For
/// up to a millisecond, running microprocesses of the waiter's priority may lock it first. It is
/// poisoned if its holder panics. A holder that locks it again waits for ever, and the deadlock
/// report names it. On one virtual processor, locking and unlocking without contention cost no
/// atomic read-modify-write.
///
/// ```
/// use kyocho_microprocess::{Mutex, run, scope};
///
/// run(|| {
///     let counter = Mutex::new(0);
///     scope(|scope| {
///         for _ in 0..10 {
///             scope.spawn(|| *counter.lock().unwrap() += 1);
///         }
///     });
///     assert_eq!(counter.into_inner().unwrap(), 10);
/// })
/// .unwrap();
/// ```
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    poison: Poison,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one microprocess at a time access to the value. So sharing the mutex only
// moves access to the value between threads, which `T: Send` allows.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: a mutex owns its value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self { raw: RawMutex::new(), poison: Poison::new(), value: UnsafeCell::new(value) }
    }

    /// Consumes the mutex and returns the value.
    ///
    /// # Errors
    /// The value inside a [`std::sync::PoisonError`] if a holder panicked.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.poison.get();
        Poison::wrap(poisoned, self.value.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex, waiting as long as necessary.
    ///
    /// # Errors
    /// The guard inside a [`std::sync::PoisonError`] if an earlier holder panicked.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.raw.lock();
        self.guard()
    }

    /// Locks the mutex if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if it is held, [`TryLockError::Poisoned`] with the guard if an
    /// earlier holder panicked.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if self.raw.try_lock() { Ok(self.guard()?) } else { Err(TryLockError::WouldBlock) }
    }

    /// Locks the mutex; waits for at most `timeout`.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if the time limit passed, [`TryLockError::Poisoned`] with the
    /// guard if an earlier holder panicked.
    pub fn lock_timeout(&self, timeout: Duration) -> TryLockResult<MutexGuard<'_, T>> {
        if self.raw.try_lock() || self.raw.lock_until(Deadline::after(timeout)) {
            Ok(self.guard()?)
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    /// Access to the value without locking: the borrow proves that no other reference exists.
    ///
    /// # Errors
    /// The reference inside a [`std::sync::PoisonError`] if a holder panicked.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Poison::wrap(self.poison.get(), self.value.get_mut())
    }

    /// Whether a holder panicked.
    pub fn is_poisoned(&self) -> bool {
        self.poison.get()
    }

    /// Declares the value valid again after a holder panicked.
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// Makes a guard for a lock whose first guard was forgotten. For interfaces that cannot keep a
    /// guard, such as C's.
    ///
    /// # Safety
    /// The calling microprocess holds the lock, and no other guard of it exists.
    pub unsafe fn make_guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, panicking: Poison::panicking(), not_send: PhantomData }
    }

    /// The guard of a mutex that was just locked.
    #[inline]
    fn guard(&self) -> LockResult<MutexGuard<'_, T>> {
        let guard =
            MutexGuard { mutex: self, panicking: Poison::panicking(), not_send: PhantomData };
        Poison::wrap(self.poison.get(), guard)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => debug.field("data", &&*guard),
            Err(TryLockError::Poisoned(error)) => debug.field("data", &&**error.get_ref()),
            Err(TryLockError::WouldBlock) => debug.field("data", &format_args!("<locked>")),
        };
        debug.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

/// Access to the value of a locked [`Mutex`]; dropping it unlocks the mutex.
#[must_use = "a mutex unlocks as soon as its guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    panicking: bool,
    /// Only the microprocess that locked the mutex may unlock it.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex to which the guard belongs.
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }

    /// The lock itself, for a condition variable, which releases and takes it while the guard
    /// exists.
    pub(super) fn raw(&mut self) -> &'a RawMutex {
        &self.mutex.raw
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while its microprocess holds the lock.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`. The guard is borrowed mutably, so there is no other borrow
        // through it.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.panicking && Poison::panicking() {
            self.mutex.poison.set();
        }
        self.mutex.raw.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
