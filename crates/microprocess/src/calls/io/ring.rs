//! The ring of the caller's virtual processor, and the function that receives its completions.
#![expect(unsafe_code, reason = "follows the address that a submission carries")]

use crate::processor::port::Port;
use crate::schedule::mask;

use super::pending::Pending;

/// A ring that belongs to no virtual processor; `None` if rings are not available.
pub(super) fn take() -> Option<&'static Port> {
    Port::take(complete)
}

/// Stores the result of the operation behind `user_data`.
///
/// # Safety
/// It is the address of a [`Pending`] that stays valid until it has its result.
unsafe fn complete(user_data: u64, result: i32) {
    let pending = core::ptr::with_exposed_provenance::<Pending>(user_data as usize);
    // SAFETY: the caller promises a valid `Pending`, which receives its result here.
    unsafe { (*pending).complete(result) };
}

/// The port of the caller's virtual processor, opened by the first operation there. `None` outside
/// a runtime, and if rings are not available.
pub(crate) fn of_caller() -> Option<&'static Port> {
    let section = mask();
    let (port, is_microprocess) = (section.vp.port(), section.vp.current.get().is_some());
    section.leave();
    if port.is_some() || !is_microprocess {
        return port;
    }
    let fresh = take()?;
    let section = mask();
    let port = section.vp.attach_port(fresh);
    section.leave();
    if !core::ptr::eq(port, fresh) {
        fresh.put();
    }
    Some(port)
}
