//! The protocol between owner and visitors of a biased lock, without the waiting.
//!
//! ```text
//!   owner                                    visitor, with the plain lock
//!   inside = 1                               revoked = 1
//!   (nothing)                                barrier on all processors
//!   revoked == 0?  ── yes ──► inside         inside == 0?  ── yes ──► inside
//!   no: inside = 0, takes the plain lock     no: sleeps until the owner leaves and sees `revoked`
//! ```
//!
//! Dekker's algorithm needs a barrier on both sides between a thread's store and its load; without
//! barriers both threads may read 0. The visitor's barrier also executes on the owner's processor,
//! between two of the owner's instructions. If it comes after the owner's store, the visitor sees
//! the store and waits. If it comes before, the owner's load sees `revoked`. So at most one of them
//! enters. The same argument holds between `inside = 0` and the owner's load of `revoked` when it
//! leaves: either the visitor reads 0, or the owner sees `revoked` and wakes the visitor.

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

/// The two words of the protocol.
#[derive(Debug)]
pub(crate) struct Bias {
    /// 1 while the owner is inside by its fast path, or is about to check whether it may enter.
    inside: AtomicU32,
    /// 1 while the owner must take the plain lock.
    revoked: AtomicU32,
}

/// Keeps the compiler, and only the compiler, from moving the owner's load before its store.
pub(crate) trait Fence {
    fn fence();
}

/// The real fence: the processor sees nothing of it. A model cannot run `membarrier`, which
/// executes a full barrier at some point of the owner's code. So in a model the owner executes a
/// full barrier here, at the only point that matters.
#[derive(Debug)]
pub(crate) struct CompilerOnly;

impl Fence for CompilerOnly {
    #[inline(always)]
    fn fence() {
        #[cfg(not(loom))]
        kyocho_sys::prim::atomic::compiler_fence(Ordering::SeqCst);
        #[cfg(loom)]
        kyocho_sys::prim::atomic::fence(Ordering::SeqCst);
    }
}

impl Bias {
    pub(crate) fn new() -> Self {
        Self { inside: AtomicU32::new(0), revoked: AtomicU32::new(0) }
    }

    /// The owner enters if the lock is biased. After `false`, [`Bias::owner_leaves`] tells whether
    /// a visitor may be asleep.
    #[inline(always)]
    pub(crate) fn owner_enters<F: Fence>(&self) -> bool {
        self.inside.store(1, Ordering::Relaxed);
        F::fence();
        self.revoked.load(Ordering::Relaxed) == 0
    }

    /// The owner leaves. Returns whether a visitor may be asleep on [`Bias::inside_word`].
    #[inline(always)]
    #[must_use]
    pub(crate) fn owner_leaves<F: Fence>(&self) -> bool {
        self.inside.store(0, Ordering::Release);
        F::fence();
        self.revoked.load(Ordering::Relaxed) != 0
    }

    /// A visitor that holds the plain lock revokes the bias, if there is one. `barrier` executes a
    /// barrier on all processors of the process.
    pub(crate) fn revoke(&self, barrier: impl FnOnce()) {
        // Only the holder of the plain lock changes it.
        if self.revoked.load(Ordering::Relaxed) == 0 {
            self.revoked.store(1, Ordering::Relaxed);
            barrier();
        }
    }

    /// Whether the owner is outside; valid after [`Bias::revoke`].
    pub(crate) fn owner_is_out(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }

    /// The owner, which holds the plain lock, restores the bias.
    #[cfg(not(loom))]
    pub(crate) fn restore(&self) {
        self.revoked.store(0, Ordering::Relaxed);
    }

    /// The word that becomes 0 when the owner leaves.
    #[cfg(not(loom))]
    pub(crate) fn inside_word(&self) -> &AtomicU32 {
        &self.inside
    }
}
