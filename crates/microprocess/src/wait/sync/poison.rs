//! The mark that a holder's panic leaves on a lock.

use std::sync::{LockResult, PoisonError};

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};

/// Whether a holder panicked.
#[derive(Debug, Default)]
pub(super) struct Poison {
    /// Written and read by holders of the lock, which orders the accesses.
    poisoned: AtomicBool,
}

impl Poison {
    pub(super) const fn new() -> Self {
        Self { poisoned: AtomicBool::new(false) }
    }

    #[inline]
    pub(super) fn get(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        self.poisoned.store(false, Ordering::Relaxed);
    }

    /// Whether the current microprocess unwinds.
    ///
    /// std counts panics by kernel thread; a microprocess is never switched away from while it
    /// unwinds, so the kernel thread's count is its own.
    #[inline]
    pub(super) fn panicking() -> bool {
        std::thread::panicking()
    }

    #[inline]
    pub(super) fn wrap<G>(poisoned: bool, guard: G) -> LockResult<G> {
        if poisoned { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }
}
