//! Ringing: if one thread changes a word just as another is about to sleep, the wake is not lost.
//!
//! ```text
//!   sleeper, the owner of state and counter           waker
//!   c = counter                                       word = new
//!   state = parked                                    if state is parked:
//!   reads the word for the last time                    counter += 1
//!   sleeps while counter = c                            wakes the sleeper on the counter
//! ```
//!
//! Either the waker finds the sleeper parked. Then the counter changes before the sleep begins, or
//! the waker wakes the sleeper. Or the sleeper publishes that it is parked after the waker has read
//! the state; then it reads the new word. The word is changed by a sequentially consistent access.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;

/// The counter's value; to be read before the sleeper's last check of the words.
pub(super) fn count(counter: &AtomicU32) -> u32 {
    counter.load(Ordering::SeqCst)
}

/// Publishes that the sleeper is about to sleep. Call before its last check of the words.
pub(super) fn publish_parked(state: &AtomicU32) {
    state.swap(PARKED, Ordering::SeqCst);
}

/// Publishes that the sleeper has woken. It checks the words again before its next sleep.
pub(super) fn publish_awake(state: &AtomicU32) {
    state.store(AWAKE, Ordering::Relaxed);
}

/// Whether the owner sleeps, or will sleep unless it finds a changed word. An invalid state counts
/// as parked: the wake is then in vain.
pub(super) fn is_parked(state: &AtomicU32) -> bool {
    state.load(Ordering::SeqCst) != AWAKE
}

/// Wakes the owner if it is parked; returns whether it was. Call after the word has changed.
pub(super) fn ring_if_parked(state: &AtomicU32, counter: &AtomicU32) -> bool {
    let parked = is_parked(state);
    if parked {
        ring(counter);
    }
    parked
}

/// Wakes the thread that sleeps on the counter, or is about to.
pub(super) fn ring(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::SeqCst);
    futex::wake_shared(counter, u32::MAX);
}
