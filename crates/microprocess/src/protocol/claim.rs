//! Which kernel thread holds a virtual processor, and how it is taken from a thread that sleeps.
//!
//! `vp` is written by the thread itself, and by the taker: a thread that takes the virtual
//! processor from it while it sleeps in the kernel. The taker stores [`CLAIMED`] first, then checks
//! whether the thread still sleeps with events unmasked. Depending on that, it makes the loss final
//! or withdraws the claim. A thread that finds a claim on its virtual processor waits for the
//! outcome, even to give the virtual processor away itself.
//!
//! ```text
//!   taker                                         holder
//!   claim: vp = CLAIMED            ────────────►  mask, then finds the claim: waits for the outcome
//!   look: asleep? mask clear?      ◄────────────  the kernel's run queue lock orders the holder's stores before the look
//!   lose: vp = null, or unclaim
//! ```
//!
//! **Invariant:** a thread that finds after `mask` that it holds a virtual processor keeps it until
//! `unmask`. (`tests/models/claim.rs` runs this file in every order.)
#![expect(unsafe_code, reason = "follows pointers to virtual processors, which are never freed")]

use core::mem::offset_of;
use core::ptr;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, compiler_fence};

use crate::protocol::pause::let_others_run;

/// The value of [`Hold::vp`] while a taker decides whether to take it.
const CLAIMED: usize = 1;

fn claimed<P>() -> *mut P {
    ptr::without_provenance_mut(CLAIMED)
}

/// The virtual processor that one kernel thread holds, and whether its events are masked.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hold<P> {
    /// Not 0 while events are masked: the virtual processor cannot be taken away, and a preemption
    /// stays pending.
    mask: AtomicU32,
    vp: AtomicPtr<P>,
}

impl<P: 'static> Hold<P> {
    /// Byte offset of the mask.
    pub(crate) const MASK_OFFSET: usize = offset_of!(Self, mask);
    /// Byte offset of the virtual processor.
    pub(crate) const VP_OFFSET: usize = offset_of!(Self, vp);

    /// For a thread that holds `vp`, or nothing if `vp` is null; events are masked.
    pub(crate) const fn new(vp: *mut P) -> Self {
        Self { mask: AtomicU32::new(1), vp: AtomicPtr::new(vp) }
    }

    /// Masks events on the calling thread; returns whether they were unmasked.
    #[inline(always)]
    pub(crate) fn mask(&self) -> bool {
        let outermost = self.mask.load(Ordering::Relaxed) == 0;
        self.mask.store(1, Ordering::Relaxed);
        // Only the signal handler on this very thread must see this order. Takers read the mask
        // after they saw the thread asleep.
        compiler_fence(Ordering::SeqCst);
        outermost
    }

    #[inline(always)]
    pub(crate) fn unmask(&self) {
        compiler_fence(Ordering::SeqCst);
        // A taker that saw the thread asleep in a section, and then reads this 0, sees everything
        // that the section did.
        self.mask.store(0, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// Whether events are masked, as seen by other threads.
    pub(crate) fn is_masked(&self) -> bool {
        self.mask.load(Ordering::SeqCst) != 0
    }

    /// The virtual processor that the thread holds. Events must be masked.
    #[inline(always)]
    pub(crate) fn held(&self) -> Option<&'static P> {
        Self::processor(self.vp.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn processor(vp: *mut P) -> Option<&'static P> {
        if vp.addr() <= CLAIMED {
            return None;
        }
        // SAFETY: neither null nor the claim, so it is a virtual processor, and those are never
        // freed.
        Some(unsafe { &*vp })
    }

    /// Waits until no claim is pending; returns the virtual processor held then.
    #[cold]
    pub(crate) fn settle_claim(&self) -> Option<&'static P> {
        loop {
            let vp = self.vp.load(Ordering::Acquire);
            if vp != claimed() {
                // Not a second load: a new claim, which will be withdrawn, may be there by then.
                return Self::processor(vp);
            }
            let_others_run();
        }
    }

    /// Takes `vp` from this thread if `look` finds it asleep where it may lose it; returns what
    /// `look` found. The caller makes the loss final with [`lose`](Self::lose). `tell` sets the
    /// word that the thread's restartable sequences read.
    pub(crate) fn take<S>(
        &self,
        vp: &'static P,
        tell: impl Fn(*mut P),
        look: impl FnOnce() -> Option<S>,
    ) -> Option<S> {
        // A thread that has just received a virtual processor has events masked, and must not find
        // it claimed.
        if self.is_masked() || !self.claim(vp) {
            return None;
        }
        tell(ptr::null_mut());
        // The mask is clear after `look`. So either it was clear while the thread slept, or that
        // section is over; the next section finds the claim.
        let seen = look().filter(|_| !self.is_masked());
        if seen.is_none() {
            tell(ptr::from_ref(vp).cast_mut());
            self.unclaim(vp);
        }
        seen
    }

    /// Claims `vp`, if this thread, which seems to sleep, holds it; returns whether the claim is
    /// set.
    pub(crate) fn claim(&self, vp: &'static P) -> bool {
        let held = ptr::from_ref(vp).cast_mut();
        self.vp.compare_exchange(held, claimed(), Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Whether a claim is pending.
    #[cfg(test)]
    pub(crate) fn is_claimed(&self) -> bool {
        self.vp.load(Ordering::SeqCst) == claimed()
    }

    /// Withdraws a claim: the thread keeps `vp`.
    fn unclaim(&self, vp: &'static P) {
        self.vp.store(ptr::from_ref(vp).cast_mut(), Ordering::SeqCst);
    }

    /// The thread holds nothing from now on. Call only with a claim pending, or if no other thread
    /// reads `vp`.
    pub(crate) fn lose(&self) {
        self.vp.store(ptr::null_mut(), Ordering::SeqCst);
    }

    /// Gives up `vp`, which the calling thread holds with events masked.
    pub(crate) fn let_go(&self, vp: &'static P) {
        let vp = ptr::from_ref(vp).cast_mut();
        // A claim is withdrawn in the end, since events are masked. Until then the exchange fails.
        while self
            .vp
            .compare_exchange(vp, ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            let_others_run();
        }
    }

    /// Gives `vp`, which no thread holds, to this thread, whose events are masked and which holds
    /// nothing.
    pub(crate) fn set(&self, vp: &'static P) {
        self.vp.store(ptr::from_ref(vp).cast_mut(), Ordering::Release);
    }

    /// Prepares for the next kernel thread with this record.
    pub(crate) fn renew(&self) {
        self.mask.store(1, Ordering::Relaxed);
        self.vp.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// Runs `taking`, unless another thread is taking the same virtual processor. Does not wait for
/// that thread: the host may keep it off its core for long.
pub(crate) fn exclusively<T>(busy: &AtomicBool, taking: impl FnOnce() -> Option<T>) -> Option<T> {
    if busy.swap(true, Ordering::Acquire) {
        return None;
    }
    let taken = taking();
    busy.store(false, Ordering::Release);
    taken
}
