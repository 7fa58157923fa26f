//! The parts of a kernel thread that the pool and spin locks need. None seems to run, so no waiter
//! spins.

use crate::for_ever;
use crate::prim::atomic::AtomicPtr;

#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct KernelThread {
    pub(crate) pool_next: AtomicPtr<Self>,
}

impl KernelThread {
    pub(crate) const fn new() -> Self {
        Self { pool_next: AtomicPtr::new(core::ptr::null_mut()) }
    }

    pub(crate) fn current() -> &'static Self {
        CURRENT.with(|thread| *thread)
    }

    pub(crate) fn is_ours() -> bool {
        true
    }

    pub(crate) fn is_foreign(&self) -> bool {
        false
    }

    pub(crate) fn may_run_beside(&self) -> bool {
        false
    }
}

loom::thread_local! {
    static CURRENT: &'static KernelThread = for_ever(KernelThread::new());
}
