//! As much of a kernel thread as the pool needs.

use crate::prim::atomic::AtomicPtr;

#[repr(align(64))]
pub(crate) struct KernelThread {
    pub(crate) pool_next: AtomicPtr<Self>,
}

impl KernelThread {
    pub(crate) const fn new() -> Self {
        Self { pool_next: AtomicPtr::new(core::ptr::null_mut()) }
    }
}
