//! A memory barrier on every thread of the process, paid by the one who asks: `membarrier(2)`.
#![expect(unsafe_code, reason = "raw system calls")]

use crate::prim::atomic::{Ordering, fence};

// `MEMBARRIER_CMD_GLOBAL`, `..._PRIVATE_EXPEDITED` and `..._REGISTER_PRIVATE_EXPEDITED` of linux/membarrier.h.
const GLOBAL: libc::c_int = 1;
const EXPEDITED: libc::c_int = 8;
const REGISTER: libc::c_int = 16;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes no pointer and changes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Asks for the cheap way of [`everywhere`] ahead. A process with one thread gets it at once, one with several waits for all cores, for
/// some 10 ms.
pub fn prepare() {
    // Refused: then each barrier takes the other way.
    let _dearer = membarrier(REGISTER);
}

/// When this returns, every other thread of the process has passed a full memory barrier.
///
/// The cheap way interrupts the cores that run us; the other waits for all cores, for milliseconds.
pub fn everywhere() {
    fence(Ordering::SeqCst);
    if !(membarrier(EXPEDITED) || membarrier(REGISTER) && membarrier(EXPEDITED)) {
        membarrier(GLOBAL);
    }
    fence(Ordering::SeqCst);
}
