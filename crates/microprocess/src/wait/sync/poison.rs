//! The mark on a lock whose holder panicked.

use std::sync::{LockResult, PoisonError};

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};

/// Whether a holder panicked.
#[derive(Debug, Default)]
pub(super) struct Poison {
    /// Read and written only by holders of the lock, which orders the accesses.
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
    /// std counts panics by kernel thread. A microprocess that unwinds never leaves its kernel
    /// thread, so the count is right for it.
    #[inline]
    pub(super) fn panicking() -> bool {
        std::thread::panicking()
    }

    #[inline]
    pub(super) fn wrap<G>(poisoned: bool, guard: G) -> LockResult<G> {
        if poisoned { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }
}
