//! The state of an object that one thread at a time accesses, and parking, with the promises of
//! `guarded.rs`: the next accessor may wake the caller at once, and a wake after the time limit
//! does nothing.
//!
//! A mutant: while [`leave_early`] is in force, a guard is left before its thread is parked.

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::time::Duration;

use loom::sync::{Mutex, MutexGuard};

use crate::prim::atomic::{AtomicBool, Ordering};
use crate::prim::cell::UnsafeCell;
use crate::record::{MicroprocessRef, Parked, Reason, Record};
use crate::vp::Masked;

thread_local! {
    // Loom runs all its threads on one kernel thread.
    static LEAVES_EARLY: Cell<bool> = const { Cell::new(false) };
    static MAY_BE_TRIED: Cell<bool> = const { Cell::new(false) };
}

/// From here on guards of this test may be tried. Loom treats a thread that is about to try a lock
/// like one that waits for it, and would report false deadlocks. So a word says whether a thread
/// has access, at the price of more executions.
pub(crate) fn may_be_tried() {
    MAY_BE_TRIED.set(true);
}

/// From here on guards of this test are left too early.
pub(crate) fn leave_early() {
    LEAVES_EARLY.set(true);
}

/// A point in time that never comes by itself: see
/// [`Record::time_out`](crate::record::Record::time_out).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline;

impl Deadline {
    pub(crate) fn after(_wait: Duration) -> Option<Self> {
        Some(Self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeCause {
    Woken,
    TimedOut,
}

pub(crate) fn make_runnable_from(_vp: Masked<'_>, microprocess: MicroprocessRef) {
    microprocess.0.wake();
}

pub(crate) struct Guarded<T> {
    lock: OnceCell<Mutex<()>>,
    inside: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time accesses the value; loom runs all threads on one kernel thread.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            lock: OnceCell::new(),
            inside: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    pub(crate) fn enter(&self) -> Guard<'_, T> {
        let lock = || self.lock.get_or_init(|| Mutex::new(()));
        // If an execution has failed, so have loom's locks; unwinding code enters without them.
        let inside = (!std::thread::panicking()).then(|| lock().lock().unwrap());
        while is_tried() && self.inside.swap(true, Ordering::Acquire) {
            loom::thread::yield_now();
        }
        Guard { object: self, _inside: inside }
    }

    pub(crate) fn enter_at_point(&self) -> Guard<'_, T> {
        self.enter()
    }

    /// Several virtual processors run, so there is no quick way.
    pub(crate) fn quickly<R>(
        &self,
        _change: impl FnOnce(&mut T, Masked<'_>) -> Option<R>,
    ) -> Option<R> {
        None
    }

    pub(crate) fn try_enter(&self) -> Option<Guard<'_, T>> {
        assert!(MAY_BE_TRIED.get(), "a model in which levels change");
        let entered = !self.inside.swap(true, Ordering::Acquire);
        entered.then(|| Guard { object: self, _inside: None })
    }
}

fn is_tried() -> bool {
    MAY_BE_TRIED.get() && !std::thread::panicking()
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if is_tried() {
            self.object.inside.swap(false, Ordering::Release);
        }
    }
}

pub(crate) struct Guard<'a, T> {
    object: &'a Guarded<T>,
    _inside: Option<MutexGuard<'a, ()>>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.object.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held; `self` is borrowed exclusively.
        unsafe { &mut *self.object.value.get() }
    }
}

impl<'a, T> Guard<'a, T> {
    pub(crate) fn caller(&self) -> Option<MicroprocessRef> {
        Some(MicroprocessRef::current())
    }

    pub(crate) fn microprocess(&self) -> MicroprocessRef {
        MicroprocessRef::current()
    }

    pub(crate) fn vp(&self) -> Masked<'a> {
        Masked::of(Record::own_vp())
    }

    pub(crate) fn park(self, reason: Reason) -> WakeCause {
        self.park_after(reason, None, |_| {})
    }

    pub(crate) fn park_until(self, deadline: Deadline, reason: Reason) -> WakeCause {
        self.park_after(reason, Some(deadline), |_| {})
    }

    pub(crate) fn park_after(
        self,
        _reason: Reason,
        deadline: Option<Deadline>,
        outside: impl FnOnce(Masked<'_>),
    ) -> WakeCause {
        let me = MicroprocessRef::current().0;
        if LEAVES_EARLY.get() {
            drop(self);
            me.prepare_to_park(deadline.is_some());
        } else {
            me.prepare_to_park(deadline.is_some());
            drop(self);
        }
        outside(Masked::of(me.home()));
        if me.park() == Parked::TimedOut { WakeCause::TimedOut } else { WakeCause::Woken }
    }
}
