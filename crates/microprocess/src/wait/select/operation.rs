//! What a `select` asks of its arms.

use crate::wait::sync::wait::Episode;

/// An operation that may have to wait, tried or waited for among others.
pub trait Operation {
    /// Does the operation if that needs no waiting; tells whether it is over.
    fn attempt(&self) -> bool;

    /// Queues the arm, as number `index` of `episode`; tells whether it has to wait.
    ///
    /// # Safety
    /// The arm and the episode stay where they are until [`withdraw`](Self::withdraw).
    unsafe fn enlist(&self, episode: &Episode, index: u32) -> bool;

    /// Takes the place in the queue that the level gives the selecter now, if the arm is in it. Masked, in no guard.
    fn rank_anew(&self, level: u8);

    /// Leaves the queue, if the arm is in it, and takes note of what was done on its behalf.
    fn withdraw(&self);

    /// Whether the operation has been done, or has failed for good.
    fn is_over(&self) -> bool;
}
