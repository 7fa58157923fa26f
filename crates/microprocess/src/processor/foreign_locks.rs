//! Counts the locks that kernel threads outside any runtime hold.

use core::cell::Cell;

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::processor::shared;

/// Locks held by kernel threads outside any runtime, except by threads that wait for the end of a
/// run.
static LOCKS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many locks the calling thread holds.
    static OWN_LOCKS: Cell<usize> = const { Cell::new(0) };
}

/// Whether a kernel thread outside any runtime holds a lock. If so, a microprocess that waits for a
/// lock may be waiting for that thread, and that is no deadlock.
pub(crate) fn holds_locks() -> bool {
    LOCKS.load(Ordering::SeqCst) != 0
}

/// Counts a lock that the caller, a kernel thread outside any runtime, has acquired. Call before
/// any other thread can begin to wait for the lock.
pub(crate) fn count_lock() {
    OWN_LOCKS.set(OWN_LOCKS.get() + 1);
    LOCKS.fetch_add(1, Ordering::SeqCst);
}

/// Uncounts a lock that the caller has released, after its waiter was woken. Events are not masked.
pub(crate) fn uncount_lock() {
    // A program that breaks the rules may release a lock that was not counted.
    if let Some(left) = OWN_LOCKS.get().checked_sub(1) {
        OWN_LOCKS.set(left);
        forget_locks(1);
    }
}

/// Calls `wait`, which waits for the end of a run. Until it returns, the caller's own locks do not
/// count: it cannot release them.
pub(crate) fn without_own_locks<R>(wait: impl FnOnce() -> R) -> R {
    let own = OWN_LOCKS.get();
    if own == 0 {
        return wait();
    }
    forget_locks(own);
    let value = wait();
    LOCKS.fetch_add(own, Ordering::SeqCst);
    value
}

fn forget_locks(count: usize) {
    if LOCKS.fetch_sub(count, Ordering::SeqCst) == count {
        shared::detect_deadlocks();
    }
}
