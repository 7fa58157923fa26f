//! The protocol between owner and visitor, without the waiting.
//!
//! ```text
//!   owner                                    visitor, with the plain lock
//!   inside = 1                               revoked = 1
//!   (nothing)                                barrier on all processors
//!   revoked == 0?  ── yes ──► inside         inside == 0?  ── yes ──► inside
//!   no: inside = 0, takes the plain lock     no: sleeps until the owner has left, which then sees `revoked`
//! ```
//!
//! Dekker's rule needs a barrier on both sides between one's own store and the look at the other's; without it both may see 0. The visitor's
//! barrier happens on the owner's processor, too, somewhere between two of its instructions. Before it: the owner's store is visible to the visitor, who waits.
//! After it: the owner's look sees `revoked`. In both cases not both are inside. The same between `inside = 0` and the look whether somebody waits: either the
//! visitor sees 0, or the owner sees `revoked`, and wakes.

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

/// The two words of the protocol.
#[derive(Debug)]
pub(crate) struct Bias {
    /// 1: the owner is inside by its fast path, or about to look whether it may.
    inside: AtomicU32,
    /// 1: the owner must take the plain lock.
    revoked: AtomicU32,
}

/// How the compiler, and nobody else, is kept from moving the owner's look before its store.
pub(crate) trait Fence {
    fn fence();
}

/// What the owner does: nothing that the processor sees. A model has no `membarrier`, which runs a full barrier at some
/// point of the owner's code; it puts the barrier at the only point that matters.
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

    /// The owner goes inside, if the bias stands. Otherwise whether a visitor may be asleep is for [`Bias::owner_leaves`] to say.
    #[inline(always)]
    pub(crate) fn owner_enters<F: Fence>(&self) -> bool {
        self.inside.store(1, Ordering::Relaxed);
        F::fence();
        self.revoked.load(Ordering::Relaxed) == 0
    }

    /// The owner goes outside; whether a visitor may be asleep on [`Bias::inside_word`].
    #[inline(always)]
    #[must_use]
    pub(crate) fn owner_leaves<F: Fence>(&self) -> bool {
        self.inside.store(0, Ordering::Release);
        F::fence();
        self.revoked.load(Ordering::Relaxed) != 0
    }

    /// A visitor, with the plain lock, takes the bias away, if it stands; `barrier` is one on all processors.
    pub(crate) fn revoke(&self, barrier: impl FnOnce()) {
        // Only who has the plain lock changes it.
        if self.revoked.load(Ordering::Relaxed) == 0 {
            self.revoked.store(1, Ordering::Relaxed);
            barrier();
        }
    }

    /// Whether the owner is out, after [`Bias::revoke`].
    pub(crate) fn owner_is_out(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }

    /// The owner, with the plain lock, takes the bias back.
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
