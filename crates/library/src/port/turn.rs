//! A lock whose waiters can be called back: who waits sleeps in one kernel call, which a signal ends, and asks then whether it is meant.
//!
//! (A standard mutex goes on waiting after a signal. A thread that waits for a port which another one holds, waiting for the host, could not be
//! ended.)

use core::ops::{Deref, DerefMut};
use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Something that one has at a time.
#[derive(Debug, Default)]
pub(crate) struct Turn<T> {
    value: Mutex<T>,
    /// Who sleeps until it is free, or is about to.
    waiters: AtomicU32,
    /// Changes when it falls free while somebody waits.
    freed: AtomicU32,
}

/// It is the holder's, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a, T> {
    /// None once it was given back.
    value: Option<MutexGuard<'a, T>>,
    turn: &'a Turn<T>,
}

impl<T> Turn<T> {
    pub(super) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), waiters: AtomicU32::new(0), freed: AtomicU32::new(0) }
    }

    /// Takes it where nobody has it.
    pub(super) fn try_lock(&self) -> Option<Held<'_, T>> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Held { value: Some(value), turn: self })
    }

    /// Takes it. Waits in the kernel; gives up where `is_cut` says so after a signal.
    pub(super) fn lock_unless(&self, is_cut: impl Fn() -> bool) -> Option<Held<'_, T>> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // Who frees it sees that somebody waits, or this one sees that it is free.
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

    /// Takes it, however long that takes.
    pub(super) fn lock(&self) -> Held<'_, T> {
        self.try_lock()
            .or_else(|| self.lock_unless(|| false))
            .expect("nothing but a cut ends the wait")
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it was not given back")
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it was not given back")
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        fence(Ordering::SeqCst);
        if self.turn.waiters.load(Ordering::SeqCst) > 0 {
            self.turn.freed.fetch_add(1, Ordering::SeqCst);
            futex::wake(&self.turn.freed, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Turn;
    use kyocho_sys::prim::thread;
    use std::sync::Arc;

    #[test]
    fn everybody_comes_to_his_turn_and_who_is_cut_to_none() {
        let turn = Arc::new(Turn::new(0));
        let count = |turn: &Turn<u32>| (0..10_000).for_each(|_| *turn.lock() += 1);
        let others: Vec<_> = (0..3)
            .map(|_| {
                let turn = Arc::clone(&turn);
                thread::spawn(move || count(&turn))
            })
            .collect();
        count(&turn);
        others.into_iter().for_each(|other| other.join().unwrap());
        let held = turn.lock();
        assert_eq!(*held, 40_000);
        assert!(turn.try_lock().is_none());
        assert!(turn.lock_unless(|| true).is_none());
        drop(held);
        assert_eq!(turn.lock_unless(|| true).map(|held| *held), Some(40_000));
    }
}
