//! Mutual exclusion for a few instructions: waiters spin, but not for who cannot release.
//!
//! Spinning pays while the holder runs on another virtual processor. It never does once the holder is *Blocked* or *Preempted*: then a
//! spinner stops and lets its virtual processor run somebody else (Paper 1, §3.2, last paragraph). It learns of that from
//! the record of the holder's kernel thread, which both events mark; where the host tells what it does to that
//! thread ([`Detection::Bpf`](crate::Detection::Bpf)), a holder whose CPU was taken counts, too.
//!
//! ```text
//!   holder   0 ──lock──► its kernel thread ──unlock──► 0       waiting   how many stand, or are about to, in the queue
//!
//!   waiter:  waiting += 1;  holder free? take it : stand in the queue       unlock:  holder = 0;  waiting > 0? wake the first
//! ```
//! Both sides write one word and then read the other, in one order for everybody: either the waiter finds the lock free or who
//! unlocks finds the waiter. Who is woken competes again.
//!
//! Nobody begins to wait in the queue while a kernel thread of no runtime holds the lock: where all wait for one, which the host may put
//! aside, their runtime would look stuck from inside, and end. **Invariant:** while somebody waits, a microprocess holds the lock, or was
//! woken to compete for it.
#![expect(unsafe_code, reason = "hands out the data that the lock protects")]

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

/// Looks at a lock whose holder runs before the spinner stops all the same: some 10 µs.
const SPINS_MAX: u32 = 300;

/// A lock around a value for critical sections of a few instructions, among virtual processors.
///
/// Uncontended lock and unlock cost an atomic instruction each, less than half of a [`Mutex`](super::Mutex)'s with several virtual
/// processors. It is not fair: whoever looks first gets it. It is not poisoned by a panic. A kernel thread that is no microprocess may use it, and spins.
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

// SAFETY: the lock lets one at a time reach the value, so sharing it only moves access to the value between threads.
unsafe impl<T: ?Sized + Send> Sync for SpinMutex<T> {}
// SAFETY: it owns its value.
unsafe impl<T: ?Sized + Send> Send for SpinMutex<T> {}

impl<T> SpinMutex<T> {
    /// An unlocked one around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            holder: AtomicPtr::new(ptr::null_mut()),
            waiting: AtomicU32::new(0),
            queue: Guarded::new(WaitQueue::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, when the lock is no longer needed.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> SpinMutex<T> {
    /// Locks: spins while the holder runs, waits while it does not.
    #[inline]
    pub fn lock(&self) -> SpinMutexGuard<'_, T> {
        if !self.take() {
            self.contend();
        }
        self.guard()
    }

    /// Locks if nobody holds it.
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

    /// Spins while the holder runs; tells whether the lock was got.
    fn spin(&self) -> bool {
        for _ in 0..SPINS_MAX {
            let holder = self.holder.load(Ordering::Relaxed).cast::<KernelThread>();
            // SAFETY: null or set by `take` to a record that lives for ever.
            match unsafe { holder.as_ref() } {
                None if self.take() => return true,
                Some(holder) if !holder.may_run_beside() => return false,
                _ => spin_loop(),
            }
        }
        false
    }

    /// Waits until somebody unlocks; tells whether the lock was got.
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

    /// Whether a kernel thread of no runtime holds it.
    fn is_held_outside(&self) -> bool {
        let holder = self.holder.load(Ordering::SeqCst).cast::<KernelThread>();
        // SAFETY: null or set by `take` to a record that lives for ever.
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

/// The right to the value of a locked [`SpinMutex`]; dropping it unlocks.
#[must_use = "it unlocks as soon as its guard is dropped"]
pub struct SpinMutexGuard<'a, T: ?Sized> {
    mutex: &'a SpinMutex<T>,
    /// The holder is the microprocess that locked.
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
        // SAFETY: as for `deref`; the guard is borrowed mutably, so nobody else borrows through it.
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
