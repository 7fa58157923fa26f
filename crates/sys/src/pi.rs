//! Donating a scheduling class with priority-inheriting futexes. A word names a thread; while
//! another thread waits on the word, the named thread runs in the waiter's class.
//!
//! ```text
//!   donor                                 recipient, a thread of any process that shares the word
//!   name(word, recipient)
//!   donate(word): sleeps ───────────────► runs in the donor's class
//!                                         ... does the work that the donor waits for
//!   returns ◄──────────────────────────── end_donations(word, me): runs in its own class again
//! ```
//!
//! The word is never *held* like a lock: a thread that gets it releases it at once. If another
//! process overwrites it, the donation ends, and nothing else happens: the kernel only uses a word
//! that names an existing thread.
//!
//! Source: `Documentation/locking/pi-futex.rst` of Linux.
#![expect(unsafe_code, reason = "system calls on a word")]

use crate::clock::timespec;
use crate::error::Errno;
use crate::fault::{self, Call};
use crate::prim::atomic::{AtomicU32, Ordering};
use crate::raw::call;
use crate::thread_id::ThreadId;

const NUMBER: u32 = libc::FUTEX_TID_MASK;

/// Lock by the monotonic clock (`FUTEX_LOCK_PI2`, Linux 5.14).
const LOCK: usize = 13;

/// The reason why a donation has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DonationEnd {
    /// The recipient ended it, or died.
    Ended,
    /// The deadline has passed.
    TimedOut,
    /// The word names no thread, or the kernel has no such futexes: the thread did not sleep.
    Refused,
}

/// A word that names its recipient, for [`donate`].
#[derive(Debug, Clone, Copy)]
pub struct Named(usize);

/// Makes `recipient` the recipient of donations through `word`. A donation to another thread ends
/// at its deadline at the latest.
pub fn name(word: &AtomicU32, recipient: ThreadId) -> Named {
    let seen = word.load(Ordering::Relaxed);
    if seen & NUMBER != recipient.number() {
        // Another thread was faster: its recipient is as good a choice.
        let _named =
            word.compare_exchange(seen, recipient.number(), Ordering::SeqCst, Ordering::Relaxed);
    }
    Named(word.as_ptr().expose_provenance())
}

/// Sleeps, and donates the caller's scheduling class meanwhile, until the recipient ends it or the
/// monotonic clock reads `deadline_ns`. The word may be unmapped meanwhile: then the call returns
/// [`DonationEnd::Refused`].
pub fn donate(word: Named, deadline_ns: u64) -> DonationEnd {
    if fault::check(Call::FutexWait).is_err() {
        return DonationEnd::Refused;
    }
    let deadline = timespec(deadline_ns);
    let arguments = [word.0, LOCK, 0, &raw const deadline as usize];
    // SAFETY: the kernel reads the time, and checks the word's address and contents.
    let answer = unsafe { call(libc::SYS_futex, arguments) };
    match answer {
        Ok(_) => {
            give_back(word);
            DonationEnd::Ended
        }
        Err(Errno::TIMEDOUT) => DonationEnd::TimedOut,
        Err(_) => DonationEnd::Refused,
    }
}

/// Ends donations through `word` to the calling thread, which must be `me`. One load if there are
/// none.
pub fn end_donations(word: &AtomicU32, me: ThreadId) {
    let seen = word.load(Ordering::Relaxed);
    if seen & libc::FUTEX_WAITERS != 0 && seen & NUMBER == me.number() {
        give_back(Named(word.as_ptr().expose_provenance()));
    }
}

/// Releases the word. The kernel does this, not a store: it wakes waiters, and checks that the word
/// exists.
fn give_back(word: Named) {
    // SAFETY: the kernel checks the word's address and contents.
    let _scribbled = unsafe { call(libc::SYS_futex, [word.0, libc::FUTEX_UNLOCK_PI as usize]) };
}

#[cfg(test)]
mod tests;
