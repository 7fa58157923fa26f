//! Waiting for another kernel thread to do something: by yielding the CPU, or by a short sleep.

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::prim::thread::yield_now;
use kyocho_sys::sleep;

/// Whether a kernel thread of this process was ever raised above others.
pub(crate) static RAISED: AtomicBool = AtomicBool::new(false);
/// How long who waits for a thread that may be below it sleeps at a time.
const PAUSE_NS: u64 = 20_000;

/// Lets other kernel threads run: one of them has something to do before the caller can go on. Who is above it must sleep for that.
#[cold]
pub(crate) fn let_others_run() {
    if RAISED.load(Ordering::Relaxed) {
        pause(PAUSE_NS);
    } else {
        yield_now();
    }
}

/// Sleeps in the kernel for about `length_ns`.
pub(crate) fn pause(length_ns: u64) {
    // Interrupted by a signal: then it was shorter.
    let _shorter = sleep::until(monotonic_ns() + length_ns);
}
