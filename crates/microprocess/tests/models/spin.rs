//! Short locks, as `spin.rs` promises them where several virtual processors need them.
//!
//! A mutant: while [`without_locks`] is in force they exclude nobody.

use core::cell::{Cell, OnceCell};
use core::fmt;

use loom::sync::{Mutex, MutexGuard};

thread_local! {
    // Loom runs all its threads on one kernel thread.
    static IS_NEEDED: Cell<bool> = const { Cell::new(true) };
}

/// From here on the short locks of this test exclude nobody.
pub(crate) fn without_locks() {
    IS_NEEDED.set(false);
}

/// Whether locks are taken: not where an execution has failed and unwinds, with loom's locks gone.
fn is_needed() -> bool {
    IS_NEEDED.get() && !std::thread::panicking()
}

/// A lock, made at its first use, in a record that lives for ever. Who waits for it sleeps.
pub(crate) struct SpinLock {
    lock: OnceCell<Mutex<()>>,
    /// Of who holds it.
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
