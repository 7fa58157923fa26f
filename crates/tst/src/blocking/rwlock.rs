//! A readers-writer lock.
//!
//! ```text
//!   63        48 47        32 31   30   29           0
//!   ┌───────────┬────────────┬────┬────┬─────────────┐
//!   │  readers  │  writers   │ W  │ P  │   readers   │     W: a writer is inside
//!   │  waiting  │  waiting   │    │    │   inside    │     P: a writer waits
//!   └───────────┴────────────┴────┴────┴─────────────┘
//! ```
//!
//! A waiting writer keeps further readers out, so it can enter once the readers inside have left.
//! Then all waiting threads are woken, and the fastest enters.
//!
//! **Invariant:** the lower half alone decides which threads may enter. The kernel compares it when
//! a thread goes to sleep: a thread that changes the decision wakes the sleepers, and a thread
//! about to sleep finds the half changed.
//!
//! **Invariant:** P is set exactly if the count of waiting writers is not 0.
#![expect(unsafe_code, reason = "hands out references to what the lock guards")]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use kyocho_sys::futex::Wait;
use kyocho_sys::prim::cell::UnsafeCell;
use kyocho_sys::scheduling::yield_to_host;

use super::Word;
use crate::atomics::Atomics;
use crate::contract::Everywhere;

#[cfg(all(test, not(loom)))]
mod tests;

const WRITER: usize = 1 << 31;
const WRITER_WAITS: usize = 1 << 30;
const READERS: usize = WRITER_WAITS - 1;
const INSIDE: usize = WRITER | READERS;
/// The half of the word that the kernel compares.
const LOWER: usize = (1 << 32) - 1;

/// The kind of access that a thread wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

impl Use {
    /// One waiting thread of this kind, in the word.
    const fn waiter(self) -> usize {
        match self {
            Self::Write => 1 << 32,
            Self::Read => 1 << 48,
        }
    }

    /// All waiting threads of this kind, in a word.
    const fn waiting(self, state: usize) -> usize {
        state / self.waiter() % (1 << 16)
    }

    /// The word after one more thread has entered; `None` if it must wait.
    const fn enter(self, state: usize) -> Option<usize> {
        match self {
            Self::Write if state & INSIDE == 0 => Some(state | WRITER),
            Self::Read if state & INSIDE == 0 => Some(state + 1),
            Self::Read if state & (WRITER | WRITER_WAITS) == 0 && state & READERS < READERS => {
                Some(state + 1)
            }
            _ => None,
        }
    }

    /// The word after one more thread waits; `None` if the count is at its maximum.
    const fn wait(self, state: usize) -> Option<usize> {
        if self.waiting(state) == SLEEPERS_MAX {
            return None;
        }
        Some(mark_writers(state + self.waiter()))
    }

    /// The word after one thread has stopped waiting.
    const fn wait_no_more(self, state: usize) -> usize {
        mark_writers(state - self.waiter())
    }
}

/// The word with P set as the count of waiting writers requires.
const fn mark_writers(state: usize) -> usize {
    if Use::Write.waiting(state) == 0 { state & !WRITER_WAITS } else { state | WRITER_WAITS }
}

/// Most sleeping threads of one kind. Further threads wait by yielding to the host.
const SLEEPERS_MAX: usize = u16::MAX as usize;

/// A readers-writer lock without the value it guards. It admits at most 2³⁰ - 1 readers at a time;
/// further readers wait.
#[derive(Debug)]
#[repr(transparent)]
pub struct RawRwLock<M = Atomics>(Word<M>);

impl RawRwLock {
    /// A free lock.
    #[must_use]
    pub const fn new() -> Self {
        Self(Word::new(Atomics, 0))
    }
}

impl Default for RawRwLock {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Everywhere> RawRwLock<M> {
    /// A free lock over `mechanism`.
    #[must_use]
    pub const fn over(mechanism: M) -> Self {
        Self(Word::new(mechanism, 0))
    }

    /// Enters as a reader if no thread is inside, or if only readers are inside and no writer
    /// waits. Returns whether it did.
    #[inline]
    #[must_use]
    pub fn try_read(&self) -> bool {
        self.change(|state| Use::Read.enter(state))
    }

    /// Enters as a reader, or gives up when the monotonic clock reads `deadline_ns`. Returns
    /// whether it entered. Blocks the kernel thread.
    #[inline]
    #[must_use]
    pub fn read_until(&self, deadline_ns: Option<u64>) -> bool {
        self.try_read() || self.wait(Use::Read, deadline_ns)
    }

    /// Enters as the writer if the lock is free. Returns whether it did.
    #[inline]
    #[must_use]
    pub fn try_write(&self) -> bool {
        self.change(|state| Use::Write.enter(state))
    }

    /// Enters as the writer; blocks and gives up as [`RawRwLock::read_until`] does.
    #[inline]
    #[must_use]
    pub fn write_until(&self, deadline_ns: Option<u64>) -> bool {
        self.try_write() || self.wait(Use::Write, deadline_ns)
    }

    /// Leaves, as a reader or as the writer. Returns `false` if no thread was inside.
    #[inline]
    pub fn leave(&self) -> bool {
        let state = self.0.load();
        if state & INSIDE == 0 {
            return false;
        }
        // No other thread changes whether a writer is inside: a writer is alone, and each reader
        // removes itself only.
        let leaving = if state & WRITER == 0 { 1 } else { WRITER };
        let before = self.0.add(leaving.wrapping_neg());
        if before & INSIDE == leaving && before > LOWER {
            self.0.wake(u32::MAX);
        }
        true
    }

    /// Changes the word as `next` requires; returns `false` if `next` returns `None`. Each retry
    /// means that another thread made progress.
    #[inline]
    fn change(&self, next: impl Fn(usize) -> Option<usize>) -> bool {
        let mut state = self.0.load();
        while let Some(next) = next(state) {
            match self.0.compare_and_swap(state, next) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    #[cold]
    fn wait(&self, as_what: Use, deadline_ns: Option<u64>) -> bool {
        while !self.change(|state| as_what.wait(state)) {
            yield_to_host();
            if self.change(|state| as_what.enter(state)) {
                return true;
            }
        }
        let enter = |state| as_what.enter(state).map(|inside| as_what.wait_no_more(inside));
        loop {
            if self.change(enter) {
                return true;
            }
            let state = self.0.load();
            // The lock may have become free between the read above and this one.
            if as_what.enter(state).is_some() {
                continue;
            }
            if self.0.sleep((state & LOWER) as u32, deadline_ns) == Wait::TimedOut {
                break;
            }
        }
        if self.change(enter) {
            return true;
        }
        self.give_up(as_what);
        false
    }

    /// Stops waiting. If the caller was the last waiting writer, readers that it kept out may
    /// enter.
    fn give_up(&self, as_what: Use) {
        self.change(|state| Some(as_what.wait_no_more(state)));
        if as_what == Use::Write && self.0.load() & WRITER_WAITS == 0 {
            self.0.wake(u32::MAX);
        }
    }
}

/// A value that many threads may read at a time, or one may change.
///
/// ```
/// # use kyocho_tst::blocking::rwlock::RwLock;
/// let names = RwLock::new(vec!["a"]);
/// assert_eq!(names.read().len() + names.read().len(), 2);
/// names.write().push("b");
/// assert_eq!(names.read().len(), 2);
/// ```
pub struct RwLock<T, M = Atomics> {
    lock: RawRwLock<M>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lets one writer or many readers access the value.
unsafe impl<T: Send, M: Send> Send for RwLock<T, M> {}
// SAFETY: as above: readers on several threads share the value.
unsafe impl<T: Send + Sync, M: Sync> Sync for RwLock<T, M> {}

impl<T> RwLock<T> {
    /// A free lock around a value.
    pub const fn new(value: T) -> Self {
        Self { lock: RawRwLock::new(), value: UnsafeCell::new(value) }
    }
}

impl<T, M: Everywhere> RwLock<T, M> {
    /// A free lock around a value, over `mechanism`.
    pub const fn over(mechanism: M, value: T) -> Self {
        Self { lock: RawRwLock::over(mechanism), value: UnsafeCell::new(value) }
    }

    /// Enters as a reader. Blocks the kernel thread until that is possible.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T, M> {
        let _inside = self.lock.read_until(None);
        ReadGuard { lock: self, value: PhantomData }
    }

    /// Enters as the writer. Blocks the kernel thread until that is possible.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T, M> {
        let _inside = self.lock.write_until(None);
        WriteGuard { lock: self, value: PhantomData }
    }

    /// Enters as a reader if that is possible at once.
    #[inline]
    #[must_use]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T, M>> {
        self.lock.try_read().then(|| ReadGuard { lock: self, value: PhantomData })
    }

    /// Enters as the writer if that is possible at once.
    #[inline]
    #[must_use]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T, M>> {
        self.lock.try_write().then(|| WriteGuard { lock: self, value: PhantomData })
    }
}

impl<T, M> fmt::Debug for RwLock<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

/// Access of a reader to the value.
#[must_use = "dropping the guard leaves the lock"]
pub struct ReadGuard<'a, T, M: Everywhere> {
    lock: &'a RwLock<T, M>,
    /// Makes the guard `Send` and `Sync` as the reference that it yields.
    value: PhantomData<&'a T>,
}

impl<T, M: Everywhere> Deref for ReadGuard<'_, T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is inside as a reader, so no writer is.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, M: Everywhere> Drop for ReadGuard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        self.lock.lock.leave();
    }
}

/// Access of the writer to the value.
#[must_use = "dropping the guard leaves the lock"]
pub struct WriteGuard<'a, T, M: Everywhere> {
    lock: &'a RwLock<T, M>,
    /// Makes the guard `Send` and `Sync` as the reference that it yields.
    value: PhantomData<&'a mut T>,
}

impl<T, M: Everywhere> Deref for WriteGuard<'_, T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is inside as the writer, so no other thread is.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, M: Everywhere> DerefMut for WriteGuard<'_, T, M> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed uniquely.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T, M: Everywhere> Drop for WriteGuard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        self.lock.lock.leave();
    }
}

impl<T: fmt::Debug, M: Everywhere> fmt::Debug for ReadGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug, M: Everywhere> fmt::Debug for WriteGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
