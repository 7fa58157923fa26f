//! A lock whose waiters can be interrupted. A waiter sleeps in one kernel call, which a signal
//! ends, and then checks whether it must give up.
//!
//! (A standard mutex continues to wait after a signal. A thread that waits for a port could then
//! not be ended while another thread uses the port and waits for the host.)

use core::ops::{Deref, DerefMut};
use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// A value that one thread at a time may access.
#[derive(Debug, Default)]
pub(crate) struct InterruptibleLock<T> {
    value: Mutex<T>,
    /// Number of threads that sleep until it is free, or are about to.
    waiters: AtomicU32,
    /// Changes when it becomes free while threads wait.
    freed: AtomicU32,
}

/// Exclusive access, until this is dropped.
#[derive(Debug)]
pub(crate) struct Locked<'a, T> {
    /// `None` once it has been released.
    value: Option<MutexGuard<'a, T>>,
    lock: &'a InterruptibleLock<T>,
}

impl<T> InterruptibleLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), waiters: AtomicU32::new(0), freed: AtomicU32::new(0) }
    }

    /// Locks it if it is free.
    pub(super) fn try_lock(&self) -> Option<Locked<'_, T>> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Locked { value: Some(value), lock: self })
    }

    /// Locks it. Waits in the kernel; gives up after a signal if `is_cut` returns true.
    pub(super) fn lock_unless(&self, is_cut: impl Fn() -> bool) -> Option<Locked<'_, T>> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // Either the releasing thread sees the waiter, or this thread sees that the lock is free.
        fence(Ordering::SeqCst);
        let taken = loop {
            let freed = self.freed.load(Ordering::SeqCst);
            if let Some(held) = self.try_lock() {
                break Some(held);
            }
            if is_cut() {
                break None;
            }
            futex::wait(&self.freed, freed, None);
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        taken
    }

    /// Locks it, however long that takes.
    pub(super) fn lock(&self) -> Locked<'_, T> {
        self.try_lock()
            .or_else(|| self.lock_unless(|| false))
            .expect("only an interruption ends the wait without the lock")
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it has not been released")
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it has not been released")
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        fence(Ordering::SeqCst);
        if self.lock.waiters.load(Ordering::SeqCst) > 0 {
            self.lock.freed.fetch_add(1, Ordering::SeqCst);
            futex::wake(&self.lock.freed, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::InterruptibleLock;
    use kyocho_sys::prim::thread;
    use std::sync::Arc;

    #[test]
    fn every_waiter_gets_the_lock_and_an_interrupted_one_gives_up() {
        let lock = Arc::new(InterruptibleLock::new(0));
        let count = |lock: &InterruptibleLock<u32>| (0..10_000).for_each(|_| *lock.lock() += 1);
        let others: Vec<_> = (0..3)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || count(&lock))
            })
            .collect();
        count(&lock);
        others.into_iter().for_each(|other| other.join().unwrap());
        let held = lock.lock();
        assert_eq!(*held, 40_000);
        assert!(lock.try_lock().is_none());
        assert!(lock.lock_unless(|| true).is_none());
        drop(held);
        assert_eq!(lock.lock_unless(|| true).map(|held| *held), Some(40_000));
    }
}
