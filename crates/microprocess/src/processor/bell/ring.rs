//! Ringing: between who is about to sleep and who has just changed a word, no wake is lost.
//!
//! ```text
//!   sleeper, whose state and counter these are        waker
//!   c = counter                                       word = new
//!   state = parked                                    if state is parked:
//!   looks at the word for the last time                 counter += 1
//!   sleeps while counter = c                            wakes who sleeps on the counter
//! ```
//!
//! Either the waker finds the sleeper parked, and then the counter has changed before it sleeps or wakes it; or the sleeper has shown that it is parked
//! after the waker looked, and so looks at the new word. Who changes the word does it by a sequentially consistent access.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;

/// What the counter reads; before the sleeper's last look at the words.
pub(super) fn count(counter: &AtomicU32) -> u32 {
    counter.load(Ordering::SeqCst)
}

/// The sleeper shows that it is about to sleep; before its last look at the words.
pub(super) fn show_parked(state: &AtomicU32) {
    state.swap(PARKED, Ordering::SeqCst);
}

/// It has woken, and looks at the words again before it sleeps the next time.
pub(super) fn show_awake(state: &AtomicU32) {
    state.store(AWAKE, Ordering::Relaxed);
}

/// Whether it sleeps, or will unless it finds a word changed. What is no state of ours counts as such: the wake is in vain then.
pub(super) fn is_parked(state: &AtomicU32) -> bool {
    state.load(Ordering::SeqCst) != AWAKE
}

/// Wakes it if it is parked: whether it was. After the change of the word.
pub(super) fn ring_if_parked(state: &AtomicU32, counter: &AtomicU32) -> bool {
    let parked = is_parked(state);
    if parked {
        ring(counter);
    }
    parked
}

/// Wakes who sleeps on the counter, or is about to.
pub(super) fn ring(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::SeqCst);
    futex::wake_shared(counter, u32::MAX);
}
