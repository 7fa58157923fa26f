//! Waits for progress of another kernel thread: yields the CPU, or sleeps for a short time.

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::prim::thread::yield_now;
use kyocho_sys::sleep;

/// Whether the priority of some kernel thread of this process was ever raised above that of others.
pub(crate) static RAISED: AtomicBool = AtomicBool::new(false);
/// How long a thread sleeps at a time while it waits for one that may have a lower priority.
const PAUSE_NS: u64 = 20_000;

/// Lets other kernel threads run, one of which the caller waits for. If priorities differ, the
/// caller must sleep: yielding does not let a thread of lower priority run.
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
    // A signal may end the sleep early, which does no harm.
    let _shorter = sleep::until(monotonic_ns() + length_ns);
}
