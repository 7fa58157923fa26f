//! The functions of higher layers by which kernel threads and microprocesses are dispatched.
//!
//! A virtual processor carries microprocesses, but does not know how they are dispatched. The
//! runtime installs these functions before the first kernel thread starts. No switch of
//! microprocesses calls one.

use core::fmt;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::Record;
use crate::processor::shared::Shared;
use crate::processor::vp::Masked;

/// The functions that the runtime installs.
pub(crate) struct Dispatcher {
    /// Called when the calling kernel thread begins, before it can receive a virtual processor.
    pub(crate) enter: fn(&'static KernelThread, &'static Shared),
    /// The dispatching loop of the calling kernel thread. Returns when the runtime stops or the
    /// thread is dismissed.
    pub(crate) dispatch: fn(&'static KernelThread),
    /// Called when the calling kernel thread ends.
    pub(crate) leave: fn(&'static KernelThread, &'static Shared),
    /// Ends a microprocess that is abandoned while it runs on the virtual processor. Called by the
    /// holder, with events masked.
    pub(crate) conclude_abandoned: fn(Masked<'_>, &'static Record),
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}
