//! Short locks, with the promises of `spin.rs` for several virtual processors.
//!
//! A mutant: while [`without_locks`] is in force, they exclude nothing.

use core::cell::{Cell, OnceCell};
use core::fmt;

use loom::sync::{Mutex, MutexGuard};

thread_local! {
    // Loom runs all its threads on one kernel thread.
    static IS_NEEDED: Cell<bool> = const { Cell::new(true) };
}

/// From here on the short locks of this test exclude nothing.
pub(crate) fn without_locks() {
    IS_NEEDED.set(false);
}

/// Whether locks are taken. They are not if a failed execution unwinds, whose locks no longer
/// exist.
fn is_needed() -> bool {
    IS_NEEDED.get() && !std::thread::panicking()
}

/// A lock, made at its first use, in a record that is never freed. A waiter sleeps.
pub(crate) struct SpinLock {
    lock: OnceCell<Mutex<()>>,
    /// The guard of the holder.
    held: Cell<Option<MutexGuard<'static, ()>>>,
}

impl fmt::Debug for SpinLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").finish_non_exhaustive()
    }
}

impl SpinLock {
    pub(crate) const fn new() -> Self {
        Self { lock: OnceCell::new(), held: Cell::new(None) }
    }

    fn lock(&self) -> &'static Mutex<()> {
        let lock = core::ptr::from_ref(self.lock.get_or_init(Mutex::default));
        // SAFETY: records of models are leaked.
        unsafe { &*lock }
    }

    pub(crate) fn acquire(&self) {
        if is_needed() {
            self.held.set(self.lock().lock().ok());
        }
    }

    pub(crate) fn try_acquire(&self) -> bool {
        if !is_needed() {
            return true;
        }
        let held = self.lock().try_lock().ok();
        let is_mine = held.is_some();
        if is_mine {
            self.held.set(held);
        }
        is_mine
    }

    pub(crate) fn release(&self) {
        if is_needed() {
            drop(self.held.take());
        }
    }
}
