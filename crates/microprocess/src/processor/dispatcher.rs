//! What a processor asks of the layers above it: the one way up.
//!
//! A virtual processor carries microprocesses, and does not know how they are dispatched. The runtime installs
//! these functions before the first kernel thread starts. None is called on the way of a switch.

use core::fmt;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::Record;
use crate::processor::shared::Shared;
use crate::processor::vp::Masked;

/// The functions that the runtime installs.
pub(crate) struct Dispatcher {
    /// The calling kernel thread begins, before it can be given a virtual processor.
    pub(crate) enter: fn(&'static KernelThread, &'static Shared),
    /// The dispatching loop of the calling kernel thread, until its runtime stops or it is dismissed.
    pub(crate) dispatch: fn(&'static KernelThread),
    /// The calling kernel thread ends.
    pub(crate) leave: fn(&'static KernelThread, &'static Shared),
    /// Ends a microprocess that is abandoned where it stands on the virtual processor. By the holder, masked.
    pub(crate) conclude_abandoned: fn(Masked<'_>, &'static Record),
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}
