//! The home of a microprocess: the virtual processor to which it belongs, and the rule for changing
//! it.

use core::ptr;

use kyocho_sys::prim::atomic::{AtomicPtr, Ordering};

use super::{ClaimedIdle, Masked, Vp};

/// A token which proves that only the caller uses the data of a virtual processor now.
pub(crate) trait Holding {
    /// That virtual processor.
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

/// The home of a microprocess. Any thread may read it. Only the holder of the present home, or a
/// thread that has claimed the present home, may change it.
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

    /// Sets the home of a new microprocess, whose record no other thread knows yet.
    #[inline]
    pub(crate) fn begin_at(&self, vp: &'static Vp) {
        self.0.store(ptr::from_ref(vp).cast_mut(), Ordering::Relaxed);
    }

    /// Changes the home to `to`. `from` proves that the caller holds or has claimed the present
    /// home.
    pub(crate) fn change(&self, from: &impl Holding, to: &'static Vp) {
        debug_assert!(
            ptr::eq(self.address(), from.processor()),
            "the token is that of the present home"
        );
        self.0.store(ptr::from_ref(to).cast_mut(), Ordering::Release);
    }
}
