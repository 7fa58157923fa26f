//! To which microprocess a record belongs. A record is reused for another one while other threads
//! walk over all records in search of those of one run.
//!
//! ```text
//!   renewal                      walk, at the end of a run
//!   id := 0                      state: in use?
//!   home := the new one          home: one of this run's?
//!   state := in use              id := 0, if it is the one that was read
//!   id := the new one
//! ```
//!
//! A walk that reads the new state also reads the new home, or a later one, and skips the record.
//! So it never ends the microprocess of another run, which received the slot meanwhile.
//!
//! **Invariant:** an id belongs to one microprocess for ever. A handle is stale if its record has
//! another id, or none.
//!
//! (`tests/models/tenure.rs` runs this file in every order.)

use kyocho_sys::prim::atomic::{AtomicU64, Ordering, fence};

/// The id of a record during its renewal, or after its microprocess was abandoned with its run.
pub(crate) const NO_ID: u64 = 0;

/// Begins the renewal of a free record for a new microprocess; [`begin`] completes it. `set_home`
/// assigns it to a run, and `set_state` marks it as in use.
#[inline]
pub(crate) fn renew(id: &AtomicU64, set_home: impl FnOnce(), set_state: impl FnOnce()) {
    id.store(NO_ID, Ordering::Relaxed);
    set_home();
    // A thread that reads the state also reads what is written above.
    fence(Ordering::Release);
    set_state();
}

/// The record belongs to microprocess `new` from now on.
#[inline]
pub(crate) fn begin(id: &AtomicU64, new: u64) {
    id.store(new, Ordering::Relaxed);
}

/// Whether a record is in use and belongs to a certain run. `is_used` checks its state, `is_ours`
/// its home.
#[inline]
pub(crate) fn is_of_run(is_used: impl FnOnce() -> bool, is_ours: impl FnOnce() -> bool) -> bool {
    if !is_used() {
        return false;
    }
    // From here on, what a renewal wrote before it set the state is visible.
    fence(Ordering::Acquire);
    is_ours()
}

/// Ends microprocess `old`; returns `false` if the record belongs to another one, or to none.
pub(crate) fn end(id: &AtomicU64, old: u64) -> bool {
    old != NO_ID && id.compare_exchange(old, NO_ID, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Returns what `look` reads of a record, if the record still belongs to microprocess `expected`
/// afterwards.
#[inline]
pub(crate) fn while_it_is<T>(id: &AtomicU64, expected: u64, look: impl FnOnce() -> T) -> Option<T> {
    let seen = look();
    // A renewal sets the id to 0 before it changes what was read.
    fence(Ordering::Acquire);
    (id.load(Ordering::Relaxed) == expected).then_some(seen)
}
