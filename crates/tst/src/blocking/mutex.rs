//! A mutex: a semaphore of one, and what it guards.
#![expect(
    unsafe_code,
    reason = "hands out references to what the lock guards; a constructor asks for a promise"
)]

use core::fmt;
use core::hint::spin_loop;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use kyocho_sys::prim::cell::UnsafeCell;

use super::semaphore::Semaphore;
use crate::Atomics;
use crate::contract::{Everywhere, TestAndSet};

/// Looks at a taken lock before sleeping: some 2 µs, less than a sleep costs, in which a short section elsewhere ends.
const LOOKS_MAX: u32 = 100;

/// A lock without what it guards: for those who keep that themselves, the C interface among them.
#[derive(Debug)]
#[repr(transparent)]
pub struct RawMutex<M = Atomics>(Semaphore<M>);

impl RawMutex {
    /// A free lock.
    #[must_use]
    pub const fn new() -> Self {
        Self(Semaphore::new(1))
    }
}

impl Default for RawMutex {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Everywhere> RawMutex<M> {
    /// A free lock, over a mechanism.
    #[must_use]
    pub const fn over(mechanism: M) -> Self {
        Self(Semaphore::over(mechanism, 1))
    }
}

impl<M: TestAndSet> RawMutex<M> {
    /// A free lock for the threads of one place, over the mechanism of that place. Every method of it panics in a thread that the mechanism
    /// refuses.
    ///
    /// # Safety
    /// As for [`Semaphore::confined`].
    #[must_use]
    pub const unsafe fn confined(mechanism: M) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Semaphore::confined(mechanism, 1) })
    }

    /// Takes the lock, if it is free.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> bool {
        self.0.try_acquire_the_one()
    }

    /// Takes the lock; blocks the kernel thread until it is free.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() && !self.look() {
            self.0.acquire();
        }
    }

    /// Takes the lock; whether it was free before the monotonic clock read `deadline_ns`.
    #[inline]
    #[must_use]
    pub fn lock_until(&self, deadline_ns: u64) -> bool {
        self.try_lock() || self.0.acquire_until(deadline_ns)
    }

    /// Frees the lock, which the caller, or somebody on its behalf, has taken.
    #[inline]
    pub fn unlock(&self) {
        self.0.give_back();
    }

    /// Whether somebody has it now.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.0.value() == 0
    }

    /// Waits a little, as long as nobody sleeps: who does was first.
    #[cold]
    fn look(&self) -> bool {
        for _ in 0..LOOKS_MAX {
            if self.0.try_acquire() {
                return true;
            }
            if self.0.waiting() != 0 {
                break;
            }
            spin_loop();
        }
        false
    }
}

/// A value that one thread at a time may use.
///
/// Without contention a compare-and-swap to lock, an addition to unlock. A panic under the lock frees it: there is no poison.
///
/// ```
/// # use kyocho_tst::blocking::mutex::Mutex;
/// let total = Mutex::new(0);
/// std::thread::scope(|threads| {
///     for _ in 0..4 {
///         threads.spawn(|| *total.lock() += 1);
///     }
/// });
/// assert_eq!(*total.lock(), 4);
/// ```
pub struct Mutex<T, M = Atomics> {
    lock: RawMutex<M>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one thread at a time reach the value.
unsafe impl<T: Send, M: Send> Send for Mutex<T, M> {}
// SAFETY: as above: a shared lock hands the value from thread to thread, so `T: Send` is enough.
unsafe impl<T: Send, M: Sync> Sync for Mutex<T, M> {}

impl<T> Mutex<T> {
    /// A free lock around a value.
    pub const fn new(value: T) -> Self {
        Self { lock: RawMutex::new(), value: UnsafeCell::new(value) }
    }
}

impl<T, M: Everywhere> Mutex<T, M> {
    /// A free lock around a value, over a mechanism.
    pub const fn over(mechanism: M, value: T) -> Self {
        Self { lock: RawMutex::over(mechanism), value: UnsafeCell::new(value) }
    }

    /// Takes the lock; blocks the kernel thread until it is free.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, M> {
        self.lock.lock();
        MutexGuard::new(self)
    }

    /// Takes the lock, if it is free.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, M>> {
        self.lock.try_lock().then(|| MutexGuard::new(self))
    }

    /// Takes the lock, if it is free before the monotonic clock reads `deadline_ns`.
    #[inline]
    #[must_use]
    pub fn lock_until(&self, deadline_ns: u64) -> Option<MutexGuard<'_, T, M>> {
        self.lock.lock_until(deadline_ns).then(|| MutexGuard::new(self))
    }

    /// The value, which nobody else can be using.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T, M> fmt::Debug for Mutex<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// The right to use the value; given back when dropped.
///
/// Threads may share a guard if they may share its value:
///
/// ```
/// # use std::{sync::atomic::AtomicU32, thread};
/// # use kyocho_tst::blocking::mutex::Mutex;
/// let mutex = Mutex::new(AtomicU32::new(0));
/// let guard = mutex.lock();
/// thread::scope(|threads| threads.spawn(|| guard.store(1, core::sync::atomic::Ordering::Relaxed)).join());
/// ```
///
/// ```compile_fail,E0277
/// # use std::{cell::Cell, thread};
/// # use kyocho_tst::blocking::mutex::Mutex;
/// let mutex = Mutex::new(Cell::new(0));
/// let guard = mutex.lock();
/// thread::scope(|threads| threads.spawn(|| guard.set(1)).join());
/// ```
#[must_use = "dropping the guard frees the lock"]
pub struct MutexGuard<'a, T, M: Everywhere> {
    mutex: &'a Mutex<T, M>,
    /// Shared and sent as the reference that it gives.
    value: PhantomData<&'a mut T>,
}

impl<'a, T, M: Everywhere> MutexGuard<'a, T, M> {
    /// Of the caller, who has the lock.
    #[inline]
    fn new(mutex: &'a Mutex<T, M>) -> Self {
        Self { mutex, value: PhantomData }
    }
}

impl<T, M: Everywhere> Deref for MutexGuard<'_, T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard has the lock, so no other one exists.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T, M: Everywhere> DerefMut for MutexGuard<'_, T, M> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed uniquely.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T, M: Everywhere> Drop for MutexGuard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.lock.unlock();
    }
}

impl<T: fmt::Debug, M: Everywhere> fmt::Debug for MutexGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
