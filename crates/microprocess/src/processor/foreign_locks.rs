//! How many locks kernel threads of no runtime hold.

use core::cell::Cell;

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::processor::shared;

/// Locks that kernel threads of no runtime hold, without those of threads that wait for the end of a run.
static LOCKS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many of all locks the calling thread holds.
    static OWN_LOCKS: Cell<usize> = const { Cell::new(0) };
}

/// Whether a kernel thread of no runtime holds a lock. Who waits for one may be waiting for that thread, so waiting is no deadlock.
pub(crate) fn holds_locks() -> bool {
    LOCKS.load(Ordering::SeqCst) != 0
}

/// Counts a lock that the caller, a kernel thread of no runtime, has got. Before anybody can begin to wait for it.
pub(crate) fn holds_one_more() {
    OWN_LOCKS.set(OWN_LOCKS.get() + 1);
    LOCKS.fetch_add(1, Ordering::SeqCst);
}

/// Counts a lock that the caller has given up, and whose waiter it has woken. Events are not masked.
pub(crate) fn holds_one_less() {
    // Perhaps not one that it counted, if the program breaks the rules.
    if let Some(left) = OWN_LOCKS.get().checked_sub(1) {
        OWN_LOCKS.set(left);
        forget_locks(1);
    }
}

/// Calls `wait`, which waits for the end of a run: until then the caller unlocks nothing.
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
