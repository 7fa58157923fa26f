//! What a virtual processor asks of its I/O: reap, wait, wake.

use crate::deadline::Deadline;

/// The I/O of one virtual processor, seen from its scheduler.
///
/// All but [`wake`](Self::wake) are called by the holder with events masked: they allocate nothing and suspend nobody.
pub(crate) trait Port: Sync {
    /// Makes the waiters of completed operations runnable.
    fn reap(&self);
    /// Sleeps until an operation completes, [`wake`](Self::wake) is called or `deadline` passes. The
    /// virtual processor has nothing else to do.
    fn wait(&self, deadline: Option<Deadline>);
    /// Ends a [`wait`](Self::wait), or the next one. From any kernel thread.
    fn wake(&self);
    /// Whether operations are in flight: waiting for them is no deadlock.
    fn is_pending(&self) -> bool;
}
