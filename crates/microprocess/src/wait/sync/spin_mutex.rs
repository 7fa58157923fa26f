//! Mutual exclusion for a few instructions: waiters spin, unless the holder is not running.
//!
//! Spinning pays while the holder runs on another virtual processor. It never pays once the holder
//! is *Blocked* or *Preempted*. A spinner then stops, and its virtual processor runs another
//! microprocess (Paper 1, §3.2, last paragraph). The spinner reads the record of the holder's
//! kernel thread, which both events mark. If the host reports preemptions
//! ([`Detection::Bpf`](crate::Detection::Bpf)), a holder that lost its CPU counts as well.
//!
//! ```text
//!   holder   0 ──lock──► its kernel thread ──unlock──► 0       waiting   how many are queued, or about to be
//!
//!   waiter:  waiting += 1;  holder free? take it : queue       unlock:  holder = 0;  waiting > 0? wake the first
//! ```
//! Both sides write one word and then read the other, in one total order. So either the waiter
//! finds the lock free, or the unlocker finds the waiter. A woken waiter competes for the lock
//! again.
//!
//! No microprocess begins to wait in the queue while a kernel thread outside any runtime holds the
//! lock. If all microprocesses waited for such a thread, their runtime would report a deadlock and
//! end. **Invariant:** while there is a waiter in the queue, a microprocess holds the lock, or was
//! woken to compete for it.
#![expect(unsafe_code, reason = "gives access to the data that the lock protects")]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU32, Ordering};
use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_sys::prim::hint::spin_loop;
use kyocho_sys::prim::thread;

use super::wait::{Outcome, Waiter, end_wait, wait};
use super::wait_queue::WaitQueue;
use crate::processor::instruments;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::{Kind, Reason};
use crate::protocol::pause::let_others_run;
use crate::schedule::guarded::Guarded;
use crate::schedule::yield_now;

/// How often a spinner checks a lock whose holder runs before it stops all the same: some 10 µs.
const SPINS_MAX: u32 = 300;

/// A lock around a value for critical sections of a few instructions, among virtual processors.
///
/// Without contention, locking and unlocking cost an atomic instruction each. With several virtual
/// processors that is less than half of what a [`Mutex`](super::Mutex) costs. The lock is not fair:
/// the first to try gets it. A panic does not poison it. Kernel threads outside any runtime may use
/// it, and spin.
///
/// ```
/// use kyocho_microprocess::sync::SpinMutex;
/// use kyocho_microprocess::{run, scope};
///
/// run(|| {
///     let counter = SpinMutex::new(0);
///     scope(|scope| {
///         for _ in 0..10 {
///             scope.spawn(|| *counter.lock() += 1);
///         }
///     });
///     assert_eq!(counter.into_inner(), 10);
/// })
/// .unwrap();
/// ```
pub struct SpinMutex<T: ?Sized> {
    holder: AtomicPtr<()>,
    pub(super) waiting: AtomicU32,
    queue: Guarded<WaitQueue>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the value. So sharing it only moves access
// to the value between threads.
unsafe impl<T: ?Sized + Send> Sync for SpinMutex<T> {}
// SAFETY: it owns its value.
unsafe impl<T: ?Sized + Send> Send for SpinMutex<T> {}

impl<T> SpinMutex<T> {
    /// An unlocked spin mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            holder: AtomicPtr::new(ptr::null_mut()),
            waiting: AtomicU32::new(0),
            queue: Guarded::new(WaitQueue::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// Consumes the lock and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> SpinMutex<T> {
    /// Locks: spins while the holder runs, waits in the queue while it does not.
    #[inline]
    pub fn lock(&self) -> SpinMutexGuard<'_, T> {
        if !self.take() {
            self.contend();
        }
        self.guard()
    }

    /// Locks if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinMutexGuard<'_, T>> {
        self.take().then(|| self.guard())
    }

    fn guard(&self) -> SpinMutexGuard<'_, T> {
        SpinMutexGuard { mutex: self, not_send: PhantomData }
    }

    #[inline]
    fn take(&self) -> bool {
        let me = ptr::from_ref(KernelThread::current()).cast_mut().cast();
        let free = ptr::null_mut();
        let taken =
            self.holder.compare_exchange(free, me, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        instruments::acquire(&self.holder);
        taken
    }

    #[cold]
    fn contend(&self) {
        while !self.spin() && !self.stand_in_queue() {}
    }

    /// Spins while the holder runs; returns whether the lock was taken.
    fn spin(&self) -> bool {
        for _ in 0..SPINS_MAX {
            let holder = self.holder.load(Ordering::Relaxed).cast::<KernelThread>();
            // SAFETY: null, or set by `take` to a record that is never freed.
            match unsafe { holder.as_ref() } {
                None if self.take() => return true,
                Some(holder) if !holder.may_run_beside() => return false,
                _ => spin_loop(),
            }
        }
        false
    }

    /// Waits until the lock is released; returns whether it was taken.
    fn stand_in_queue(&self) -> bool {
        if !KernelThread::is_ours() {
            thread::yield_now();
            return false;
        }
        let queue = self.queue.enter_at_point();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        if self.take() {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            return true;
        }
        if self.is_held_outside() {
            drop(queue);
            yield_now();
            let_others_run();
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        let waiter = Waiter::new(queue.microprocess(), 0);
        let object = ptr::from_ref(&self.queue).expose_provenance();
        let reason = Reason { kind: Kind::SpinMutex, object };
        let outcome = wait(&self.queue, queue, |queue| queue, &waiter, None, reason);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        end_wait(outcome, None);
        false
    }

    /// Whether a kernel thread outside any runtime holds it.
    fn is_held_outside(&self) -> bool {
        let holder = self.holder.load(Ordering::SeqCst).cast::<KernelThread>();
        // SAFETY: null, or set by `take` to a record that is never freed.
        unsafe { holder.as_ref() }.is_some_and(KernelThread::is_foreign)
    }

    #[cold]
    fn wake_one(&self) {
        let mut queue = self.queue.enter();
        if let Some(first) = queue.pop() {
            first.wake(queue.vp(), Outcome::Granted);
        }
    }
}

impl<T: Default> Default for SpinMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for SpinMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SpinMutex");
        match self.try_lock() {
            Some(guard) => debug.field("data", &&*guard),
            None => debug.field("data", &format_args!("<locked>")),
        };
        debug.finish_non_exhaustive()
    }
}

/// Access to the value of a locked [`SpinMutex`]; dropping it unlocks.
#[must_use = "it unlocks as soon as its guard is dropped"]
pub struct SpinMutexGuard<'a, T: ?Sized> {
    mutex: &'a SpinMutex<T>,
    /// Only the thread that locked it may unlock it.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` only.
unsafe impl<T: ?Sized + Sync> Sync for SpinMutexGuard<'_, T> {}

impl<T: ?Sized> Deref for SpinMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while the lock is held.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`. The guard is borrowed mutably, so there is no other borrow
        // through it.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for SpinMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        instruments::release(&self.mutex.holder);
        self.mutex.holder.store(ptr::null_mut(), Ordering::SeqCst);
        if self.mutex.waiting.load(Ordering::SeqCst) != 0 {
            self.mutex.wake_one();
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for SpinMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
