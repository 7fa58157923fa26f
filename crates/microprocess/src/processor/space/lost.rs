//! What happens when another program truncates the shared file: an access beyond its end raises
//! `SIGBUS`.
//!
//! The file belongs to the user, so any program of the user may truncate it, and no process may die
//! of that. The handler maps memory of this process in place of the file, and the access is
//! repeated. From then on priorities hold within this process only, as if the file were not
//! available, and [`report`](crate::report()) shows that. A file that is only deleted is still
//! shared by the processes that have it open.
#![expect(unsafe_code, reason = "a signal handler")]

use core::ffi::c_void;
use std::sync::OnceLock;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::signal::{self, Action, HandlerOptions, Info, Signal, preserving_errno};

/// The action of such a fault before the handler was installed.
static BEFORE: OnceLock<Action> = OnceLock::new();
static LOST: AtomicBool = AtomicBool::new(false);

/// Installs the handler, once in the life of the process.
pub(super) fn prepare() {
    BEFORE.get_or_init(|| {
        let manner = HandlerOptions {
            on_alternate_stack: true,
            restart_calls: true,
            ..HandlerOptions::default()
        };
        // SAFETY: the handler allocates nothing and takes no lock. It repairs the fault or forwards
        // it.
        let before = unsafe { signal::install(Signal::BUS, on_fault, manner) };
        before.expect("SIGBUS can be handled")
    });
}

/// Whether the file was truncated and this process noticed it.
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
        // SAFETY: the handler's own arguments, while it runs.
        unsafe { before.forward(Signal::BUS, info, context) };
    }
}
