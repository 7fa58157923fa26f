//! The operations that a `select` needs of its arms.

use crate::wait::sync::wait::Episode;

/// A channel operation that can be tried, or waited for among others.
pub trait Operation {
    /// Does the operation if that needs no waiting; returns whether it has ended.
    fn attempt(&self) -> bool;

    /// Queues the arm, as number `index` of `episode`, if it has to wait; returns whether it has.
    ///
    /// # Safety
    /// The arm and the episode stay where they are until [`withdraw`](Self::withdraw).
    unsafe fn enlist(&self, episode: &Episode, index: u32) -> bool;

    /// Moves the arm, if it is queued, to the place in its queue that fits the selecting
    /// microprocess's new `level`. Call with events masked, in no guard.
    fn rank_anew(&self, level: u8);

    /// Removes the arm from its queue, if it is queued, and records what was done on its behalf.
    fn withdraw(&self);

    /// Whether the operation has been done, or has failed for good.
    fn is_over(&self) -> bool;
}
