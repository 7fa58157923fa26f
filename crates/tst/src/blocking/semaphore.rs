//! A counting semaphore.
#![expect(unsafe_code, reason = "a constructor that asks for a promise")]

use core::fmt;

use kyocho_sys::futex::Wait;

use super::Word;
use crate::atomics::Atomics;
use crate::contract::{Everywhere, TestAndSet};

/// One more waiting thread.
const WAITER: usize = 1 << 32;
/// The bits of the word that hold the value.
const VALUE: usize = WAITER - 1;

/// Largest value, as POSIX has it.
pub const VALUE_MAX: u32 = i32::MAX as u32;

/// The semaphore has its largest value, [`VALUE_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the semaphore has its largest value, {VALUE_MAX}")
    }
}

impl core::error::Error for Overflow {}

/// A counting semaphore: a thread that finds the value 0 waits. Without contention each operation
/// is one compare-and-swap.
///
/// No order is guaranteed: a new thread may be faster than one that was woken.
///
/// ```
/// # use kyocho_tst::blocking::semaphore::Semaphore;
/// let seats = Semaphore::new(1);
/// seats.acquire();
/// assert!(!seats.try_acquire());
/// seats.release().unwrap();
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Semaphore<M = Atomics>(Word<M>);

impl Semaphore {
    /// A semaphore with `value`.
    ///
    /// # Panics
    /// `value` exceeds [`VALUE_MAX`].
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self::over(Atomics, value)
    }
}

impl<M: Everywhere> Semaphore<M> {
    /// A semaphore with `value`, over `mechanism`.
    ///
    /// # Panics
    /// `value` exceeds [`VALUE_MAX`].
    #[must_use]
    pub const fn over(mechanism: M, value: u32) -> Self {
        // SAFETY: the mechanism refuses no thread.
        unsafe { Self::confined(mechanism, value) }
    }
}

impl<M: TestAndSet> Semaphore<M> {
    /// A semaphore with `value` for the threads of one virtual processor or CPU, over its
    /// mechanism.
    ///
    /// # Panics
    /// `value` exceeds [`VALUE_MAX`]. Every method panics in a thread that the mechanism refuses.
    ///
    /// # Safety
    /// The mechanism excludes all threads that ever use the semaphore from each other.
    #[must_use]
    pub const unsafe fn confined(mechanism: M, value: u32) -> Self {
        assert!(value <= VALUE_MAX, "the value exceeds VALUE_MAX");
        Self(Word::new(mechanism, value as usize))
    }

    /// Decrements the value if it is not 0. Returns whether it did.
    #[inline]
    #[must_use]
    pub fn try_acquire(&self) -> bool {
        self.try_take(self.0.load(), 0)
    }

    /// Decrements the value. Blocks the kernel thread while it is 0.
    #[inline]
    pub fn acquire(&self) {
        if !self.try_acquire() {
            self.wait(None);
        }
    }

    /// Decrements the value, or gives up when the monotonic clock reads `deadline_ns`. Returns
    /// whether it did. Blocks the kernel thread.
    #[inline]
    #[must_use]
    pub fn acquire_until(&self, deadline_ns: u64) -> bool {
        self.try_acquire() || self.wait(Some(deadline_ns))
    }

    /// Increments the value and wakes one waiting thread.
    ///
    /// # Errors
    /// [`Overflow`]: nothing has changed.
    #[inline]
    pub fn release(&self) -> Result<(), Overflow> {
        let mut state = self.0.load();
        while state & VALUE < VALUE_MAX as usize {
            match self.0.compare_and_swap(state, state + 1) {
                Ok(()) => {
                    self.wake_one(state);
                    return Ok(());
                }
                Err(now) => state = now,
            }
        }
        Err(Overflow)
    }

    /// Increments the value after a decrement, so it cannot overflow.
    #[inline]
    pub(super) fn give_back(&self) {
        let state = self.0.add(1);
        self.wake_one(state);
    }

    /// Decrements a value that is probably 1 and that probably no thread waits for.
    #[inline]
    pub(super) fn try_acquire_the_one(&self) -> bool {
        self.try_take(1, 0)
    }

    /// The value now.
    #[must_use]
    pub fn value(&self) -> u32 {
        (self.0.load() & VALUE) as u32
    }

    /// Number of threads that wait now.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        (self.0.load() / WAITER) as u32
    }

    /// Decrements the value and adds `change` to the word; `state` is the caller's guess of the
    /// word. Each retry means that another thread made progress.
    #[inline]
    fn try_take(&self, mut state: usize, change: usize) -> bool {
        while state & VALUE != 0 {
            match self.0.compare_and_swap(state, (state - 1).wrapping_add(change)) {
                Ok(()) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    #[inline]
    fn wake_one(&self, state: usize) {
        if state >= WAITER {
            self.0.wake(1);
        }
    }

    #[cold]
    fn wait(&self, deadline_ns: Option<u64>) -> bool {
        const NO_WAITER: usize = WAITER.wrapping_neg();
        self.0.add(WAITER);
        loop {
            if self.try_take(self.0.load(), NO_WAITER) {
                return true;
            }
            if self.0.sleep(0, deadline_ns) == Wait::TimedOut {
                break;
            }
        }
        if self.try_take(self.0.load(), NO_WAITER) {
            return true;
        }
        self.0.add(NO_WAITER);
        false
    }
}
