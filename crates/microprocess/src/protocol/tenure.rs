//! Whose a record is: it changes hands while others, who walk over all records, look for those of one run.
//!
//! ```text
//!   renewal                      walk, at the end of a run
//!   id := 0                      state: in use?
//!   home := the new one          home: one of this run's?
//!   state := in use              id := 0, if it is the one that was read
//!   id := the new one
//! ```
//!
//! A walk that reads the new state reads the new home, or a later one, and passes over the record. So it never ends
//! the microprocess of another run, which got the slot meanwhile.
//!
//! **Invariant:** an id is that of one microprocess for ever. A handle whose record has another id, or none, is stale.
//!
//! (`tests/models/tenure.rs` runs this file in every order.)

use kyocho_sys::prim::atomic::{AtomicU64, Ordering, fence};

/// The id of a record that changes hands, or whose microprocess was abandoned with its run.
pub(crate) const NOBODY: u64 = 0;

/// Takes a free record for a new microprocess; [`begin`] ends that. `set_home` and `set_state` make it one of a run, in use.
#[inline]
pub(crate) fn renew(id: &AtomicU64, set_home: impl FnOnce(), set_state: impl FnOnce()) {
    id.store(NOBODY, Ordering::Relaxed);
    set_home();
    // Whoever reads the state reads what is above.
    fence(Ordering::Release);
    set_state();
}

/// The record is that of microprocess `new` from now on.
#[inline]
pub(crate) fn begin(id: &AtomicU64, new: u64) {
    id.store(new, Ordering::Relaxed);
}

/// Whether a record is in use, as `is_used` reads it from its state, and of the run that `is_ours` knows by its home.
#[inline]
pub(crate) fn is_of_run(is_used: impl FnOnce() -> bool, is_ours: impl FnOnce() -> bool) -> bool {
    if !is_used() {
        return false;
    }
    // What a renewal did before it set the state is seen from here on.
    fence(Ordering::Acquire);
    is_ours()
}

/// Ends microprocess `old`; `false` if the record is no longer its.
pub(crate) fn end(id: &AtomicU64, old: u64) -> bool {
    old != NOBODY && id.compare_exchange(old, NOBODY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// What `look` reads of a record, if that is still microprocess `expected`'s afterwards.
#[inline]
pub(crate) fn while_it_is<T>(id: &AtomicU64, expected: u64, look: impl FnOnce() -> T) -> Option<T> {
    let seen = look();
    // A renewal sets the id to 0 before it changes what was read.
    fence(Ordering::Acquire);
    (id.load(Ordering::Relaxed) == expected).then_some(seen)
}
