//! A mutex: a semaphore of one, and the value it guards.
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
use crate::atomics::Atomics;
use crate::contract::{Everywhere, TestAndSet};

/// Reads of a taken lock before sleeping: about 2 µs, less than the cost of a sleep, in which a
/// short critical section on another CPU ends.
const LOOKS_MAX: u32 = 100;

/// A lock without the value it guards, for users such as the C interface that keep the value
/// themselves.
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
    /// A free lock over `mechanism`.
    #[must_use]
    pub const fn over(mechanism: M) -> Self {
        Self(Semaphore::over(mechanism, 1))
    }
}

impl<M: TestAndSet> RawMutex<M> {
    /// A free lock for the threads of one virtual processor or CPU, over its mechanism. Every
    /// method panics in a thread that the mechanism refuses.
    ///
    /// # Safety
    /// As for [`Semaphore::confined`].
    #[must_use]
    pub const unsafe fn confined(mechanism: M) -> Self {
        // SAFETY: the caller guarantees it.
        Self(unsafe { Semaphore::confined(mechanism, 1) })
    }

    /// Takes the lock if it is free. Returns whether it did.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> bool {
        self.0.try_acquire_the_one()
    }

    /// Takes the lock. Blocks the kernel thread until it is free.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() && !self.look() {
            self.0.acquire();
        }
    }

    /// Takes the lock, or gives up when the monotonic clock reads `deadline_ns`. Returns whether it
    /// took the lock. Blocks the kernel thread.
    #[inline]
    #[must_use]
    pub fn lock_until(&self, deadline_ns: u64) -> bool {
        self.try_lock() || self.0.acquire_until(deadline_ns)
    }

    /// Releases the lock. It must be taken; any thread may release it.
    #[inline]
    pub fn unlock(&self) {
        self.0.give_back();
    }

    /// Whether the lock is taken now.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.0.value() == 0
    }

    /// Spins a little while no thread sleeps on the lock. A sleeper was first, so it ends the
    /// spinning. Returns whether it took the lock.
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
/// Without contention, locking is a compare-and-swap and unlocking an addition. A panic under the
/// lock releases it: locks are not poisoned.
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

// SAFETY: the lock lets one thread at a time access the value.
unsafe impl<T: Send, M: Send> Send for Mutex<T, M> {}
// SAFETY: as above: a shared lock transfers the value between threads, so `T: Send` is enough.
unsafe impl<T: Send, M: Sync> Sync for Mutex<T, M> {}

impl<T> Mutex<T> {
    /// A free lock around a value.
    pub const fn new(value: T) -> Self {
        Self { lock: RawMutex::new(), value: UnsafeCell::new(value) }
    }
}

impl<T, M: Everywhere> Mutex<T, M> {
    /// A free lock around a value, over `mechanism`.
    pub const fn over(mechanism: M, value: T) -> Self {
        Self { lock: RawMutex::over(mechanism), value: UnsafeCell::new(value) }
    }

    /// Takes the lock. Blocks the kernel thread until it is free.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, M> {
        self.lock.lock();
        MutexGuard::new(self)
    }

    /// Takes the lock if it is free.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, M>> {
        self.lock.try_lock().then(|| MutexGuard::new(self))
    }

    /// Takes the lock, or returns `None` when the monotonic clock reads `deadline_ns`. Blocks the
    /// kernel thread.
    #[inline]
    #[must_use]
    pub fn lock_until(&self, deadline_ns: u64) -> Option<MutexGuard<'_, T, M>> {
        self.lock.lock_until(deadline_ns).then(|| MutexGuard::new(self))
    }

    /// The value. The unique reference proves that no other thread uses it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T, M> fmt::Debug for Mutex<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// Access to the value. Dropping it releases the lock.
///
/// Threads may share a guard if they may share its value:
///
/// ```
/// # use std::{sync::atomic::{AtomicU32, Ordering}, thread};
/// # use kyocho_tst::blocking::mutex::Mutex;
/// let mutex = Mutex::new(AtomicU32::new(0));
/// let guard = mutex.lock();
/// thread::scope(|threads| threads.spawn(|| guard.store(1, Ordering::Relaxed)).join());
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
    /// Makes the guard `Send` and `Sync` as the reference that it yields.
    value: PhantomData<&'a mut T>,
}

impl<'a, T, M: Everywhere> MutexGuard<'a, T, M> {
    /// The guard of a caller that has taken the lock.
    #[inline]
    fn new(mutex: &'a Mutex<T, M>) -> Self {
        Self { mutex, value: PhantomData }
    }
}

impl<T, M: Everywhere> Deref for MutexGuard<'_, T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, so there is no other guard.
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
