//! Who holds a virtual processor, and how it is taken from a kernel thread that sleeps.
//!
//! `vp` is written by the thread itself and by whoever takes the processor away from it while it sleeps in the kernel. The taker puts
//! [`CLAIMED`] there first, looks whether the thread still sleeps with events unmasked, and only then makes the loss final or takes
//! the claim back. A thread that finds a claim waits for its outcome; so does one that gives its processor away itself.
//!
//! ```text
//!   taker                                         holder
//!   claim: vp = CLAIMED            ────────────►  mask, then finds the claim: waits for the outcome
//!   look: asleep? mask clear?      ◄────────────  the kernel's run queue lock orders the holder's stores before the look
//!   lose: vp = null, or unclaim
//! ```
//!
//! **Invariant:** between `mask` and `unmask` a thread that found a processor keeps it. (`tests/models/claim.rs` runs this file in every order.)
#![expect(unsafe_code, reason = "follows pointers to virtual processors, which live for ever")]

use core::mem::offset_of;
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, compiler_fence};

use crate::protocol::pause::let_others_run;

/// What [`Hold::vp`] is while somebody decides whether to take it.
const CLAIMED: usize = 1;

fn claimed<P>() -> *mut P {
    ptr::without_provenance_mut(CLAIMED)
}

/// What one kernel thread holds, and whether its events are masked.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hold<P> {
    /// Events are masked: the processor cannot be taken away, a preemption stays pending.
    mask: AtomicU32,
    vp: AtomicPtr<P>,
}

impl<P: 'static> Hold<P> {
    /// Where the mask is, in bytes.
    pub(crate) const MASK_OFFSET: usize = offset_of!(Self, mask);
    /// Where the processor is.
    pub(crate) const VP_OFFSET: usize = offset_of!(Self, vp);

    /// Of a thread that holds `vp`, or null; events are masked.
    pub(crate) const fn new(vp: *mut P) -> Self {
        Self { mask: AtomicU32::new(1), vp: AtomicPtr::new(vp) }
    }

    /// Masks events on the calling thread; tells whether they were not.
    #[inline(always)]
    pub(crate) fn mask(&self) -> bool {
        let outermost = self.mask.load(Ordering::Relaxed) == 0;
        self.mask.store(1, Ordering::Relaxed);
        // The handler on this very thread is the only one who must see this order; takers look
        // at the mask after they saw the thread asleep.
        compiler_fence(Ordering::SeqCst);
        outermost
    }

    #[inline(always)]
    pub(crate) fn unmask(&self) {
        compiler_fence(Ordering::SeqCst);
        // A taker that saw the thread asleep in a section, and then finds this, sees all that the section did.
        self.mask.store(0, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// Whether events are masked, for others than the thread itself.
    pub(crate) fn is_masked(&self) -> bool {
        self.mask.load(Ordering::SeqCst) != 0
    }

    /// The processor it holds. Events must be masked.
    #[inline(always)]
    pub(crate) fn held(&self) -> Option<&'static P> {
        Self::processor(self.vp.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn processor(vp: *mut P) -> Option<&'static P> {
        if vp.addr() <= CLAIMED {
            return None;
        }
        // SAFETY: neither null nor the claim, so a virtual processor, which lives for ever.
        Some(unsafe { &*vp })
    }

    /// Waits until no claim is pending; the processor it holds then.
    #[cold]
    pub(crate) fn settle_claim(&self) -> Option<&'static P> {
        loop {
            let vp = self.vp.load(Ordering::Acquire);
            if vp != claimed() {
                // Not a second load: somebody else may claim it by then, who will take that back.
                return Self::processor(vp);
            }
            let_others_run();
        }
    }

    /// Takes `vp` from this thread if `look` finds it asleep where it may lose it; what it found. The caller makes the loss final by
    /// [`lose`](Self::lose). `tell` sets the word that the thread's restartable sequences look at.
    pub(crate) fn take<S>(
        &self,
        vp: &'static P,
        tell: impl Fn(*mut P),
        look: impl FnOnce() -> Option<S>,
    ) -> Option<S> {
        // Who was just given a processor is masked, and must not find it claimed.
        if self.is_masked() || !self.claim(vp) {
            return None;
        }
        tell(ptr::null_mut());
        // A mask that is clear after the look was clear while the thread slept, or its section is over; the next one finds the claim.
        let seen = look().filter(|_| !self.is_masked());
        if seen.is_none() {
            tell(ptr::from_ref(vp).cast_mut());
            self.unclaim(vp);
        }
        seen
    }

    /// Begins to take `vp` from this thread, which seems to sleep.
    pub(crate) fn claim(&self, vp: &'static P) -> bool {
        let held = ptr::from_ref(vp).cast_mut();
        self.vp.compare_exchange(held, claimed(), Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Whether somebody decides about its processor just now.
    #[cfg(test)]
    pub(crate) fn is_claimed(&self) -> bool {
        self.vp.load(Ordering::SeqCst) == claimed()
    }

    /// Leaves `vp` with the thread after all.
    fn unclaim(&self, vp: &'static P) {
        self.vp.store(ptr::from_ref(vp).cast_mut(), Ordering::SeqCst);
    }

    /// The claim stands, or nobody looks: the thread holds nothing.
    pub(crate) fn lose(&self) {
        self.vp.store(ptr::null_mut(), Ordering::SeqCst);
    }

    /// Gives up `vp`, which the calling thread holds with events masked.
    pub(crate) fn let_go(&self, vp: &'static P) {
        let vp = ptr::from_ref(vp).cast_mut();
        // A claim fails, since events are masked; wait until it has.
        while self
            .vp
            .compare_exchange(vp, ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            let_others_run();
        }
    }

    /// Lets this thread, which is masked and holds nothing, hold `vp`, which nobody holds.
    pub(crate) fn set(&self, vp: &'static P) {
        self.vp.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
    }

    /// For the next kernel thread with this record.
    pub(crate) fn renew(&self) {
        self.mask.store(1, Ordering::Relaxed);
        self.vp.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// Does `taking`, unless somebody else takes the same processor just now. Somebody of the lowest class may be at it for long: nothing else
/// may depend on its end.
pub(crate) fn exclusively<T>(busy: &AtomicBool, taking: impl FnOnce() -> Option<T>) -> Option<T> {
    if busy.swap(true, Ordering::Acquire) {
        return None;
    }
    let taken = taking();
    busy.store(false, Ordering::Release);
    taken
}
