//! A link between elements that are never freed: a pointer that any thread may read.
//!
//! Only one thread at a time changes a link: the holder of a virtual processor. Links are relaxed
//! atomic words all the same. So a user scheduler that changes an entry of another virtual
//! processor may spoil its own order, but never memory safety. A relaxed load or store is a plain
//! one on every supported processor.
#![expect(unsafe_code, reason = "follows the pointer")]

use core::marker::PhantomData;
use core::{fmt, ptr};

use kyocho_sys::prim::atomic::{AtomicPtr, Ordering};

/// `None`, or an element.
pub(crate) struct Link<R: 'static>(AtomicPtr<R>, PhantomData<&'static R>);

impl<R> fmt::Debug for Link<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<R> Link<R> {
    /// A link to no element.
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&'static R> {
        // SAFETY: null, or made by `set` from a reference with static lifetime.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }
    }

    #[inline]
    pub(crate) fn set(&self, to: Option<&'static R>) {
        let to = to.map_or(ptr::null_mut(), |to| ptr::from_ref(to).cast_mut());
        self.0.store(to, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn take(&self) -> Option<&'static R> {
        let was = self.get();
        self.set(None);
        was
    }
}
