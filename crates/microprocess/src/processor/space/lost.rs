//! What happens when somebody cuts the shared file short: a look behind its end is a `SIGBUS`.
//!
//! The file is the user's, so any program of the user may do that. Nobody is to die of it: the handler puts memory of this process in the
//! file's place and lets the look be done again. From then on priorities hold within the process alone, as where the file could not be had, and
//! [`report`](crate::report()) says so. A file that is only taken out of its directory is still shared by those who have it open.
#![expect(unsafe_code, reason = "a signal handler")]

use core::ffi::c_void;
use std::sync::OnceLock;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::signal::{self, Action, Info, Manner, Signal, preserving_errno};

/// What such a fault did before us.
static BEFORE: OnceLock<Action> = OnceLock::new();
static LOST: AtomicBool = AtomicBool::new(false);

/// Installs the handler, once in the life of the process.
pub(super) fn prepare() {
    BEFORE.get_or_init(|| {
        let manner = Manner { on_alternate_stack: true, restart_calls: true, ..Manner::default() };
        // SAFETY: the handler allocates nothing and takes no lock; it mends the fault or passes it on.
        let before = unsafe { signal::install(Signal::BUS, on_fault, manner) };
        before.expect("SIGBUS can be handled")
    });
}

/// Whether the file was cut short, and this process found out.
pub(super) fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

unsafe extern "C" fn on_fault(_signal: i32, info: *mut Info, context: *mut c_void) {
    // SAFETY: the kernel passes the cause of the fault.
    let cause = unsafe { &*info };
    // SAFETY: a fault has an address.
    let address = unsafe { cause.si_addr() }.addr();
    if preserving_errno(|| super::mend(address)) {
        return LOST.store(true, Ordering::Relaxed);
    }
    if let Some(before) = BEFORE.get() {
        // SAFETY: we are in the handler, with its arguments.
        unsafe { before.forward(Signal::BUS, info, context) };
    }
}
