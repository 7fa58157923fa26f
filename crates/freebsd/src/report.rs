//! Reports to the UNIX server: calls that are not implemented, and all others if the server shows
//! them.

use crate::host::pass;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The served call that reports. Its words: the kind, the number of a FreeBSD call, and the first
/// four words of that call.
pub const REPORT: u32 = 0x0b59_0003;
/// Asks whether calls are shown.
pub const ASK: u64 = 0;
/// A call is about to be made.
pub const TRACED: u64 = 1;
/// A call is not implemented.
pub const MISSING: u64 = 2;

static SHOWING: AtomicBool = AtomicBool::new(false);

/// Asks the server whether calls are shown.
pub(crate) fn ask() {
    SHOWING.store(pass(REPORT, &[ASK]) == Ok(1), Relaxed);
}

/// Reports a call, if calls are shown.
pub(crate) fn show(call: u64, words: &[u64; 6]) {
    if SHOWING.load(Relaxed) {
        send(TRACED, call, words);
    }
}

/// Reports a call that is not implemented.
pub(crate) fn miss(call: u64, words: &[u64; 6]) {
    send(MISSING, call, words);
}

fn send(what: u64, call: u64, words: &[u64; 6]) {
    // If the server is gone, this process is being ended.
    let _ = pass(REPORT, &[what, call, words[0], words[1], words[2], words[3]]);
}
