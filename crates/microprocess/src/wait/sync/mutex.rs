//! Mutual exclusion.
#![expect(unsafe_code, reason = "hands out the data that the lock protects")]

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

/// A lock around a value, as [`std::sync::Mutex`], for microprocesses.
///
/// Released, it goes to the first waiter: highest priority first, FIFO among equals; equals that run may be faster, for a millisecond. It is
/// poisoned when its holder panics. A holder that locks it again waits for ever (and is named in the
/// deadlock report). Uncontended lock and unlock cost no atomic read-modify-write on one virtual
/// processor.
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

// SAFETY: the lock lets one microprocess at a time reach the value, so sharing the mutex only moves
// access to the value between threads, which `T: Send` allows.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: a mutex owns its value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self { raw: RawMutex::new(), poison: Poison::new(), value: UnsafeCell::new(value) }
    }

    /// The value, when the mutex is no longer needed.
    ///
    /// # Errors
    /// The value inside a [`std::sync::PoisonError`] when a holder panicked.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.poison.get();
        Poison::wrap(poisoned, self.value.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks, waiting for as long as it takes.
    ///
    /// # Errors
    /// The guard inside a [`std::sync::PoisonError`] when an earlier holder panicked.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.raw.lock();
        self.guard()
    }

    /// Locks if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] when it is held, [`TryLockError::Poisoned`] with the guard when
    /// an earlier holder panicked.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if self.raw.try_lock() { Ok(self.guard()?) } else { Err(TryLockError::WouldBlock) }
    }

    /// Locks, waiting for at most `timeout`.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] when the time ran out, [`TryLockError::Poisoned`] with the
    /// guard when an earlier holder panicked.
    pub fn lock_timeout(&self, timeout: Duration) -> TryLockResult<MutexGuard<'_, T>> {
        if self.raw.try_lock() || self.raw.lock_until(Deadline::after(timeout)) {
            Ok(self.guard()?)
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    /// The value, without locking: the borrow proves that nobody else can reach it.
    ///
    /// # Errors
    /// The reference inside a [`std::sync::PoisonError`] when a holder panicked.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Poison::wrap(self.poison.get(), self.value.get_mut())
    }

    /// Whether a holder panicked.
    pub fn is_poisoned(&self) -> bool {
        self.poison.get()
    }

    /// Declares the value sound again after a holder panicked.
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// The guard of a lock whose first guard was forgotten: for interfaces that cannot carry one, such as C's.
    ///
    /// # Safety
    /// The calling microprocess holds the lock, and no other guard of it is left.
    pub unsafe fn make_guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, panicking: Poison::panicking(), not_send: PhantomData }
    }

    /// The guard of a lock just taken.
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

/// The right to the value of a locked [`Mutex`]; dropping it unlocks.
#[must_use = "a mutex unlocks as soon as its guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    panicking: bool,
    /// The holder is the microprocess that locked.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The mutex whose guard this is.
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }

    /// The lock itself, for a condition variable that releases and retakes it under the guard.
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
        // SAFETY: as for `deref`; the guard is borrowed mutably, so nobody else borrows through it.
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
