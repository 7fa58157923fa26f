//! Counting semaphores.

use core::time::Duration;

use super::{
    wait::{Outcome, Waiter, end_wait, wait},
    wait_queue::WaitQueue,
};
use crate::processor::record::{Kind, Reason};
use crate::schedule::guarded::{Deadline, Guarded};

/// A number of permits that microprocesses take and release.
///
/// A released permit goes to the first waiter, highest priority first, FIFO among equals.
///
/// ```
/// use kyocho_microprocess::{Semaphore, run, spawn};
/// use std::sync::Arc;
///
/// run(|| {
///     let items = Arc::new(Semaphore::new(0));
///     let consumer = {
///         let items = Arc::clone(&items);
///         spawn(move || (0..3).for_each(|_| items.acquire()))
///     };
///     (0..3).for_each(|_| items.release());
///     consumer.join().unwrap();
///     assert!(!items.try_acquire());
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Semaphore {
    state: Guarded<State>,
}

#[derive(Debug)]
struct State {
    /// **Invariant:** zero while there is a waiter.
    permits: usize,
    waiters: WaitQueue,
}

impl Semaphore {
    /// A semaphore with this many permits.
    pub const fn new(permits: usize) -> Self {
        Self { state: Guarded::new(State { permits, waiters: WaitQueue::new() }) }
    }

    /// Takes a permit, waiting as long as necessary.
    #[inline]
    pub fn acquire(&self) {
        if !self.acquire_quickly() {
            self.acquire_until(None);
        }
    }

    /// Takes a permit if there is one and the caller has no orders.
    #[inline(always)]
    fn acquire_quickly(&self) -> bool {
        let take =
            |state: &mut State| state.permits.checked_sub(1).map(|left| state.permits = left);
        self.state.quickly(|state, _| take(state)).is_some()
    }

    /// Takes a permit if there is one.
    #[inline]
    #[must_use = "the result says whether a permit was taken"]
    pub fn try_acquire(&self) -> bool {
        let mut state = self.state.enter_at_point();
        let got = state.permits > 0;
        if got {
            state.permits -= 1;
        }
        got
    }

    /// Takes a permit; waits for at most `timeout`. Returns whether it took one.
    #[must_use = "the result says whether a permit was taken"]
    pub fn acquire_timeout(&self, timeout: Duration) -> bool {
        self.try_acquire() || self.acquire_until(Deadline::after(timeout))
    }

    /// Releases a permit, or adds one.
    ///
    /// # Panics
    /// There are `usize::MAX` permits already.
    #[inline]
    pub fn release(&self) {
        let give = |state: &mut State| {
            let permits = state.permits.checked_add(1).filter(|_| state.waiters.is_empty())?;
            state.permits = permits;
            Some(())
        };
        if self.state.quickly(|state, _| give(state)).is_none() {
            self.release_to_waiter();
        }
    }

    fn release_to_waiter(&self) {
        let mut state = self.state.enter();
        match state.waiters.pop() {
            Some(first) => first.wake(state.vp(), Outcome::Granted),
            None => match state.permits.checked_add(1) {
                Some(permits) => state.permits = permits,
                None => {
                    drop(state);
                    panic!("a semaphore holds at most usize::MAX permits");
                }
            },
        }
    }

    /// The number of permits, which may have changed before the caller uses the result.
    pub fn permits(&self) -> usize {
        self.state.enter().permits
    }

    fn acquire_until(&self, deadline: Option<Deadline>) -> bool {
        let mut state = self.state.enter_at_point();
        if state.permits > 0 {
            state.permits -= 1;
            return true;
        }
        let waiter = Waiter::new(state.microprocess(), 0);
        let reason = Reason { kind: Kind::Semaphore, object: core::ptr::from_ref(self).addr() };
        let outcome =
            wait(&self.state, state, |state| &mut state.waiters, &waiter, deadline, reason);
        end_wait(outcome, deadline)
    }
}
