//! The virtual processor that a microprocess belongs to, and who may change that.

use core::ptr;

use kyocho_sys::prim::atomic::{AtomicPtr, Ordering};

use super::{ClaimedIdle, Masked, Vp};

/// A token that shows that nobody but the caller touches what belongs to a virtual processor now.
pub(crate) trait Holding {
    /// Which virtual processor.
    fn processor(&self) -> &'static Vp;
}

impl Holding for Masked<'_> {
    #[inline(always)]
    fn processor(&self) -> &'static Vp {
        self.vp()
    }
}

impl Holding for ClaimedIdle {
    fn processor(&self) -> &'static Vp {
        self.vp()
    }
}

/// A microprocess's home. Everybody reads it; only who holds the present home changes it.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Home(AtomicPtr<Vp>);

impl Home {
    pub(crate) const fn nowhere() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Null before the first use of the slot.
    #[inline]
    pub(crate) fn address(&self) -> *const Vp {
        self.0.load(Ordering::Acquire)
    }

    /// Of a new microprocess, whose record nobody knows yet.
    #[inline]
    pub(crate) fn begin_at(&self, vp: &'static Vp) {
        self.0.store(ptr::from_ref(vp).cast_mut(), Ordering::Relaxed);
    }

    /// Becomes `to`, at the word of who holds the present one.
    pub(crate) fn change(&self, from: &impl Holding, to: &'static Vp) {
        debug_assert!(ptr::eq(self.address(), from.processor()), "it is given by whom it is at");
        self.0.store(ptr::from_ref(to).cast_mut(), Ordering::Release);
    }
}
