//! What the UNIX server is told of this personality: calls that are not there, and all others where it shows them.

use crate::host::pass;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The served call that reports: what, the number of a FreeBSD call, three of its words.
pub const REPORT: u32 = 0x0b59_0003;
/// Asks whether calls are shown.
pub const ASK: u64 = 0;
/// A call that is about to be made.
pub const SHOWN: u64 = 1;
/// A call that is not there.
pub const MISSING: u64 = 2;

static SHOWING: AtomicBool = AtomicBool::new(false);

/// Learns whether calls are shown.
pub(crate) fn ask() {
    SHOWING.store(pass(REPORT, &[ASK]) == Ok(1), Relaxed);
}

/// Shows a call, if somebody looks.
pub(crate) fn show(call: u64, words: &[u64; 6]) {
    if SHOWING.load(Relaxed) {
        tell(SHOWN, call, words);
    }
}

/// Names a call that is not there.
pub(crate) fn miss(call: u64, words: &[u64; 6]) {
    tell(MISSING, call, words);
}

fn tell(what: u64, call: u64, words: &[u64; 6]) {
    // A server that is gone ends this process.
    let _ = pass(REPORT, &[what, call, words[0], words[1], words[2], words[3]]);
}
