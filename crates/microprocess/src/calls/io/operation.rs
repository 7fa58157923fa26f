//! Performing one operation: through the ring if there is one, otherwise as a plain system call.
#![expect(unsafe_code, reason = "the kernel reads and writes what an operation points to")]

use core::{iter, time::Duration};
use std::{
    io::{Error, ErrorKind, Result},
    os::fd::{AsRawFd, BorrowedFd},
};

use io_uring::squeue;
use kyocho_sys::{
    poll::{self, Interest},
    prim::clock::monotonic_ns,
};

use super::{pending::Pending, ring, routing};
use crate::data::deadline::Deadline;
use crate::processor::record::{Kind, Reason};
use crate::schedule::kill_point;
use crate::schedule::mask;

/// An operation on a descriptor, in two forms for the kernel.
pub(crate) struct Operation<'a, Call: FnMut() -> Result<usize>> {
    pub(crate) descriptor: BorrowedFd<'a>,
    /// The readiness of the descriptor that the operation needs.
    pub(crate) interest: Interest,
    /// The request to the ring, without user data.
    pub(crate) entry: squeue::Entry,
    /// The same as a system call that blocks the kernel thread.
    pub(crate) call: Call,
}

impl<Call: FnMut() -> Result<usize>> Operation<'_, Call> {
    /// Performs the operation and returns its count. The microprocess waits, its kernel thread does
    /// not.
    ///
    /// Without a ring, or outside a runtime, the plain call blocks the kernel thread. Within a
    /// runtime that is a Blocked event, and other microprocesses continue.
    ///
    /// # Errors
    /// The kernel's, and [`ErrorKind::TimedOut`] after `timeout`.
    ///
    /// # Safety
    /// What the entry points to stays valid during the call, and is writable where the kernel
    /// writes.
    pub(crate) unsafe fn perform(mut self, timeout: Option<Duration>) -> Result<usize> {
        let deadline = timeout.and_then(Deadline::after);
        let _visit = routing::of(self.descriptor.as_raw_fd()).follow();
        loop {
            kill_point::hot_point();
            // SAFETY: the caller's promise.
            let through_ring = unsafe { through_ring(&self.entry, deadline) };
            let result = through_ring.unwrap_or_else(|| self.plainly(deadline));
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Makes the plain call. If there is a deadline, waits first until the descriptor is ready.
    fn plainly(&mut self, deadline: Option<Deadline>) -> Result<usize> {
        if let Some(deadline) = deadline {
            let left = Duration::from_nanos(deadline.ns().saturating_sub(monotonic_ns()));
            let ready = poll::wait([(self.descriptor, self.interest)], Some(left))
                .map_err(|errno| Error::from_raw_os_error(errno.number()))?;
            if !ready {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        (self.call)()
    }
}

/// Performs `entry` through the ring of the caller's virtual processor, if it has one.
///
/// # Safety
/// What the entry points to stays valid during the call, and is writable where the kernel writes.
unsafe fn through_ring(entry: &squeue::Entry, deadline: Option<Deadline>) -> Option<Result<usize>> {
    ring::of_caller()?;
    let pending = Pending::new();
    let address = core::ptr::from_ref(&pending).expose_provenance();
    let entry = entry.clone().user_data(address as u64);
    let section = mask();
    let Some(port) = section.vp.port() else {
        // Preempted since the first line, and now on a virtual processor without a port.
        section.leave();
        // SAFETY: the caller's promise.
        return unsafe { through_ring(&entry, deadline) };
    };
    // SAFETY: this function does not return before `pending` has its result. The calling thread is
    // the holder, with events masked.
    unsafe { port.submit(&entry) };
    port.reap();
    section.leave();
    let reason = Reason { kind: Kind::Io, object: core::ptr::from_ref(port).addr() };
    let in_time = pending.wait(deadline, reason);
    let given_up = in_time.is_none();
    if given_up {
        port.cancel(address as u64);
    }
    // Until then the kernel owns the buffers, even if the caller is killed.
    let to_the_end = || iter::repeat_with(|| pending.wait(None, reason)).find_map(|result| result);
    let result = in_time.or_else(to_the_end).expect("the iterator has no end");
    if given_up && result == -libc::ECANCELED {
        kill_point::after_wait(deadline);
    }
    Some(match u32::try_from(result) {
        Ok(count) => Ok(count as usize),
        Err(_) if result == -libc::ECANCELED && given_up => Err(ErrorKind::TimedOut.into()),
        // Cancelled without a request: the kernel thread that submitted it has exited. The
        // operation is repeated.
        Err(_) if result == -libc::ECANCELED => Err(ErrorKind::Interrupted.into()),
        Err(_) => Err(Error::from_raw_os_error(-result)),
    })
}
