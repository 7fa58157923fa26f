//! Stack overflow: reports a fault on a guard page with the name of the microprocess.
#![expect(unsafe_code, reason = "a signal handler")]

use core::ffi::c_void;
use std::sync::OnceLock;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::signal::{self, Action, HandlerOptions, Info, Signal};
use kyocho_sys::standard_error::tell;

use crate::processor::record::Record;
use crate::processor::slot;

/// The action of a fault before the handler was installed.
static BEFORE: OnceLock<Action> = OnceLock::new();

/// Installs the handler, once in the life of the process.
pub(crate) fn install() {
    BEFORE.get_or_init(|| {
        let manner = HandlerOptions {
            on_alternate_stack: true,
            restart_calls: true,
            ..HandlerOptions::default()
        };
        // SAFETY: the handler allocates nothing. It either ends the process or forwards the fault.
        let before = unsafe { signal::install(Signal::SEGV, on_fault, manner) };
        before.expect("SIGSEGV can be handled")
    });
}

unsafe extern "C" fn on_fault(_signal: i32, info: *mut Info, context: *mut c_void) {
    // SAFETY: the kernel passes the cause of the fault.
    let cause = unsafe { &*info };
    // SAFETY: a fault has an address.
    let address = unsafe { cause.si_addr() }.addr();
    if let Some(record) = slot::overflowed(address) {
        report(record, address);
        std::process::abort();
    }
    if let Some(before) = BEFORE.get() {
        // SAFETY: the handler's own arguments, while it runs.
        unsafe { before.forward(Signal::SEGV, info, context) };
    }
}

/// Prints whose stack overflowed.
fn report(record: &Record, address: usize) {
    let name = record.name.get();
    let kib = slot::stack_bytes(record.class.get()) >> 10;
    let (id, name) = (record.id.load(Ordering::Relaxed), name.as_str().unwrap_or("(no name)"));
    // If this fails, there is no other place to report it.
    let _untold = tell(format_args!(
        "kyocho: stack overflow in microprocess {id} {name}: {kib} KiB of stack, fault at {address:#x}"
    ));
}
