//! A memory barrier on every thread of the process, at the cost of the caller: `membarrier(2)`.
#![expect(unsafe_code, reason = "raw system calls")]

use crate::prim::atomic::{Ordering, fence};

// `MEMBARRIER_CMD_GLOBAL`, `..._PRIVATE_EXPEDITED` and `..._REGISTER_PRIVATE_EXPEDITED` of
// linux/membarrier.h.
const GLOBAL: libc::c_int = 1;
const EXPEDITED: libc::c_int = 8;
const REGISTER: libc::c_int = 16;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes no pointer and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Registers the process for the fast variant of [`everywhere`]. Immediate while the process has
/// one thread; with several it waits for all cores, about 10 ms.
pub fn prepare() {
    // If refused, each barrier uses the slow variant.
    let _dearer = membarrier(REGISTER);
}

/// Executes a full memory barrier on every other thread of the process before it returns.
///
/// The fast variant interrupts the cores that run the process. The slow one waits for all cores,
/// for milliseconds.
pub fn everywhere() {
    fence(Ordering::SeqCst);
    if !(membarrier(EXPEDITED) || membarrier(REGISTER) && membarrier(EXPEDITED)) {
        membarrier(GLOBAL);
    }
    fence(Ordering::SeqCst);
}
