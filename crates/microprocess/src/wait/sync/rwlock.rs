//! A lock with shared read access.
#![expect(unsafe_code, reason = "gives access to the data that the lock protects")]

use core::{
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    time::Duration,
};
use std::sync::{LockResult, TryLockError, TryLockResult};

use kyocho_sys::prim::cell::UnsafeCell;

use super::{
    poison::Poison,
    raw_rwlock::{Access, RawRwLock},
};
use crate::schedule::guarded::Deadline;

/// A value that many microprocesses may read at once, or one may write, with the interface of
/// [`std::sync::RwLock`].
///
/// Waiting readers and writers are in one queue, highest priority first, FIFO among equals. A
/// waiting writer holds back later readers of its priority, so neither side starves. If the lock
/// becomes empty, running microprocesses of the writer's priority may enter before it, for up to a
/// millisecond. A reader that locks again while a writer waits will wait for ever. A panic of a
/// writer poisons the lock.
///
/// ```
/// use kyocho_microprocess::{RwLock, run};
///
/// run(|| {
///     let table = RwLock::new(vec![1, 2]);
///     {
///         let (one, another) = (table.read().unwrap(), table.read().unwrap());
///         assert_eq!(one.len() + another.len(), 4);
///     }
///     table.write().unwrap().push(3);
///     assert_eq!(table.into_inner().unwrap(), [1, 2, 3]);
/// })
/// .unwrap();
/// ```
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    poison: Poison,
    value: UnsafeCell<T>,
}

// SAFETY: readers on several threads share `&T` (`Sync`); a writer moves access to it (`Send`).
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}
// SAFETY: a lock owns its value.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}

impl<T> RwLock<T> {
    /// An unlocked lock around `value`.
    pub const fn new(value: T) -> Self {
        Self { raw: RawRwLock::new(), poison: Poison::new(), value: UnsafeCell::new(value) }
    }

    /// Consumes the lock and returns the value.
    ///
    /// # Errors
    /// The value inside a [`PoisonError`](super::PoisonError) if a writer panicked.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.poison.get();
        Poison::wrap(poisoned, self.value.into_inner())
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks for reading, waiting as long as necessary.
    ///
    /// # Errors
    /// The guard inside a [`PoisonError`](super::PoisonError) if a writer panicked.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.raw.lock(Access::Read, None);
        self.read_guard()
    }

    /// Locks for reading if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if it would have to wait, [`TryLockError::Poisoned`] with the
    /// guard if a writer panicked.
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let got = self.raw.try_lock(Access::Read);
        if got { Ok(self.read_guard()?) } else { Err(TryLockError::WouldBlock) }
    }

    /// Locks for reading; waits for at most `timeout`.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn read_timeout(&self, timeout: Duration) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let got = self.raw.lock(Access::Read, Deadline::after(timeout));
        if got { Ok(self.read_guard()?) } else { Err(TryLockError::WouldBlock) }
    }

    /// Locks for writing, waiting as long as necessary.
    ///
    /// # Errors
    /// The guard inside a [`PoisonError`](super::PoisonError) if a writer panicked.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        self.raw.lock(Access::Write, None);
        self.write_guard()
    }

    /// Locks for writing if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if it is held, [`TryLockError::Poisoned`] with the guard if a
    /// writer panicked.
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let got = self.raw.try_lock(Access::Write);
        if got { Ok(self.write_guard()?) } else { Err(TryLockError::WouldBlock) }
    }

    /// Locks for writing; waits for at most `timeout`.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn write_timeout(&self, timeout: Duration) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let got = self.raw.lock(Access::Write, Deadline::after(timeout));
        if got { Ok(self.write_guard()?) } else { Err(TryLockError::WouldBlock) }
    }

    /// Access to the value without locking: the borrow proves that no other reference exists.
    ///
    /// # Errors
    /// The reference inside a [`PoisonError`](super::PoisonError) if a writer panicked.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Poison::wrap(self.poison.get(), self.value.get_mut())
    }

    /// Whether a writer panicked.
    pub fn is_poisoned(&self) -> bool {
        self.poison.get()
    }

    /// Declares the value valid again after a writer panicked.
    pub fn clear_poison(&self) {
        self.poison.clear();
    }

    /// Makes a guard for a lock whose first guard was forgotten. For interfaces that cannot keep a
    /// guard, such as C's.
    ///
    /// # Safety
    /// The calling microprocess has locked for reading, and no other guard of that locking exists.
    pub unsafe fn make_read_guard(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard { lock: self, not_send: PhantomData }
    }

    /// As [`make_read_guard`](Self::make_read_guard), for a writer.
    ///
    /// # Safety
    /// The calling microprocess has locked for writing, and no other guard of that locking exists.
    pub unsafe fn make_write_guard(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard { lock: self, panicking: Poison::panicking(), not_send: PhantomData }
    }

    fn read_guard(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        Poison::wrap(self.poison.get(), RwLockReadGuard { lock: self, not_send: PhantomData })
    }

    fn write_guard(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let panicking = Poison::panicking();
        let guard = RwLockWriteGuard { lock: self, panicking, not_send: PhantomData };
        Poison::wrap(self.poison.get(), guard)
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => debug.field("data", &&*guard),
            Err(TryLockError::Poisoned(error)) => debug.field("data", &&**error.get_ref()),
            Err(TryLockError::WouldBlock) => debug.field("data", &format_args!("<locked>")),
        };
        debug.field("poisoned", &self.is_poisoned()).finish_non_exhaustive()
    }
}

/// Read access to the value of an [`RwLock`]; dropping it unlocks.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while the guard exists its microprocess reads, so there is no writer.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.raw.unlock_read();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Write access to the value of an [`RwLock`]; dropping it unlocks.
#[must_use = "the lock is released as soon as its guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    panicking: bool,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while the guard exists only its microprocess has access to the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`. The guard is borrowed mutably, so there is no other borrow
        // through it.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        if !self.panicking && Poison::panicking() {
            self.lock.poison.set();
        }
        self.lock.raw.unlock_write();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
