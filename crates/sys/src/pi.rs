//! Priority-inheriting futexes, used to lend: the thread whose number a word carries runs in the class of whoever waits for the word, until it
//! gives it back.
//!
//! ```text
//!   lender                                  debtor, a thread of any process that shares the word
//!   name(word, debtor)
//!   lend(word): sleeps ───────────────────► runs in the lender's class
//!                                           ... does what the lender waits for
//!   returns ◄────────────────────────────── repay(word, me): runs in its own class again
//! ```
//!
//! Nobody ever *holds* the word as one holds a lock: who is given it gives it back at once. What others scribble into it ends the loan, no more:
//! the kernel believes a word only as far as it names a thread that exists.
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

/// Why a loan is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loan {
    /// The debtor gave it back, or died.
    Repaid,
    /// The deadline has passed.
    TimedOut,
    /// The word names nobody, or the kernel has no such futexes: the thread never slept.
    Refused,
}

/// A word that names its debtor: where [`lend`] sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Named(usize);

/// Makes `debtor` the one that a loan by `word` goes to. One that is under way to somebody else ends, at the latest when its time is over.
pub fn name(word: &AtomicU32, debtor: ThreadId) -> Named {
    let seen = word.load(Ordering::Relaxed);
    if seen & NUMBER != debtor.number() {
        // Somebody else was quicker: then that one's debtor is as good a guess.
        let _named =
            word.compare_exchange(seen, debtor.number(), Ordering::SeqCst, Ordering::Relaxed);
    }
    Named(word.as_ptr().expose_provenance())
}

/// Sleeps, and lends the caller's scheduling class meanwhile, until the debtor repays or the monotonic clock reads `deadline_ns`. The word may be
/// unmapped meanwhile: then it refuses.
pub fn lend(word: Named, deadline_ns: u64) -> Loan {
    if fault::check(Call::FutexWait).is_err() {
        return Loan::Refused;
    }
    let deadline = timespec(deadline_ns);
    let arguments = [word.0, LOCK, 0, &raw const deadline as usize];
    // SAFETY: the kernel reads the time, and checks the word's address and what it says.
    let answer = unsafe { call(libc::SYS_futex, arguments) };
    match answer {
        Ok(_) => {
            give_back(word);
            Loan::Repaid
        }
        Err(Errno::TIMEDOUT) => Loan::TimedOut,
        Err(_) => Loan::Refused,
    }
}

/// Ends the loans by `word` to the calling thread, which is `me`, if there are any: one load where there are none.
pub fn repay(word: &AtomicU32, me: ThreadId) {
    let seen = word.load(Ordering::Relaxed);
    if seen & libc::FUTEX_WAITERS != 0 && seen & NUMBER == me.number() {
        give_back(Named(word.as_ptr().expose_provenance()));
    }
}

/// By the kernel and not by a store: it looks who waits, and whether the word is there.
fn give_back(word: Named) {
    // SAFETY: the kernel checks the word's address and what it says.
    let _scribbled = unsafe { call(libc::SYS_futex, [word.0, libc::FUTEX_UNLOCK_PI as usize]) };
}

#[cfg(test)]
mod tests;
