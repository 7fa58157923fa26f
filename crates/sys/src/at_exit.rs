//! Functions to call when the process exits normally (`atexit`).
#![expect(unsafe_code, reason = "a call of the C library")]

use std::sync::Mutex;

static CALLS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Calls `last` when `main` returns or `exit` is called, but not when the process is killed, aborts
/// or calls `_exit`.
///
/// Has no effect if the C library has no memory for the registration. Allocates.
pub fn call(last: fn()) {
    extern "C" fn all() {
        let calls = CALLS.lock().map(|mut calls| core::mem::take(&mut *calls)).unwrap_or_default();
        for last in calls {
            last();
        }
    }
    let Ok(mut calls) = CALLS.lock() else { return };
    if calls.is_empty() {
        // SAFETY: the function lives as long as the program.
        let refused = unsafe { libc::atexit(all) } != 0;
        if refused {
            return;
        }
    }
    calls.push(last);
}
