//! A counting semaphore.
#![expect(unsafe_code, reason = "a constructor that asks for a promise")]

use core::fmt;

use kyocho_sys::futex::Wait;

use super::Word;
use crate::Atomics;
use crate::contract::{Everywhere, TestAndSet};

/// One more thread waits.
const WAITER: usize = 1 << 32;
/// The part of the word that counts.
const VALUE: usize = WAITER - 1;

/// Largest value, as POSIX has it.
pub const VALUE_MAX: u32 = i32::MAX as u32;

/// It counts [`VALUE_MAX`] already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the semaphore counts {VALUE_MAX} already")
    }
}

impl core::error::Error for Overflow {}

/// A count of what may be had; who finds none waits. Without contention one compare-and-swap each way.
///
/// Whoever comes may be quicker than who was woken: no order is promised.
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
    /// A semaphore of `value`.
    ///
    /// # Panics
    /// When that is more than [`VALUE_MAX`].
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self::over(Atomics, value)
    }
}

impl<M: Everywhere> Semaphore<M> {
    /// A semaphore of `value`, over a mechanism.
    ///
    /// # Panics
    /// When that is more than [`VALUE_MAX`].
    #[must_use]
    pub const fn over(mechanism: M, value: u32) -> Self {
        // SAFETY: the mechanism refuses nobody.
        unsafe { Self::confined(mechanism, value) }
    }
}

impl<M: TestAndSet> Semaphore<M> {
    /// A semaphore of `value` for the threads of one place, over the mechanism of that place.
    ///
    /// # Panics
    /// When that is more than [`VALUE_MAX`]. So does every method of it in a thread that the mechanism refuses.
    ///
    /// # Safety
    /// The mechanism excludes all threads that ever use the semaphore from each other.
    #[must_use]
    pub const unsafe fn confined(mechanism: M, value: u32) -> Self {
        assert!(value <= VALUE_MAX, "more than a semaphore counts");
        Self(Word::new(mechanism, value as usize))
    }

    /// Takes one, if there is one.
    #[inline]
    #[must_use]
    pub fn try_acquire(&self) -> bool {
        self.try_take(self.0.load(), 0)
    }

    /// Takes one; blocks the kernel thread until there is one.
    #[inline]
    pub fn acquire(&self) {
        if !self.try_acquire() {
            self.wait(None);
        }
    }

    /// Takes one; whether there was one before the monotonic clock read `deadline_ns`.
    #[inline]
    #[must_use]
    pub fn acquire_until(&self, deadline_ns: u64) -> bool {
        self.try_acquire() || self.wait(Some(deadline_ns))
    }

    /// Gives one back, and wakes one that waits.
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

    /// Gives one back to a semaphore that cannot overflow, because it was taken from it.
    #[inline]
    pub(super) fn give_back(&self) {
        let state = self.0.add(1);
        self.wake_one(state);
    }

    /// Takes one from a semaphore that is likely to count one and to be waited for by nobody.
    #[inline]
    pub(super) fn try_acquire_the_one(&self) -> bool {
        self.try_take(1, 0)
    }

    /// How many there are now.
    #[must_use]
    pub fn value(&self) -> u32 {
        (self.0.load() & VALUE) as u32
    }

    /// How many threads wait now.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        (self.0.load() / WAITER) as u32
    }

    /// Takes one and adds `change` to the word, from what the word is believed to be. Each turn after the first means that
    /// another thread got on.
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
