//! Stack overflow: a fault on a guard page is told by the name of the microprocess.
#![expect(unsafe_code, reason = "a signal handler")]

use core::ffi::c_void;
use std::sync::OnceLock;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::signal::{self, Action, Info, Manner, Signal};
use kyocho_sys::standard_error::tell;

use crate::processor::record::Record;
use crate::processor::slot;

/// What a fault did before us.
static BEFORE: OnceLock<Action> = OnceLock::new();

/// Installs the handler, once in the life of the process.
pub(crate) fn install() {
    BEFORE.get_or_init(|| {
        let manner = Manner { on_alternate_stack: true, restart_calls: true, ..Manner::default() };
        // SAFETY: the handler allocates nothing; it either ends the process or passes the fault on.
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
        // SAFETY: we are in the handler, with its arguments.
        unsafe { before.forward(Signal::SEGV, info, context) };
    }
}

/// Says whose stack it was.
fn report(record: &Record, address: usize) {
    let name = record.name.get();
    let kib = slot::stack_bytes(record.class.get()) >> 10;
    let (id, name) = (record.id.load(Ordering::Relaxed), name.as_str().unwrap_or("(no name)"));
    // Nobody is left to tell if it fails.
    let _untold = tell(format_args!(
        "kyocho: stack overflow in microprocess {id} {name}: {kib} KiB of stack, fault at {address:#x}"
    ));
}
