//! Kernel threads that sleep until a word changes.
//!
//! Futexes are private to the address space unless the name says otherwise.
#![expect(unsafe_code, reason = "system calls on a word")]

use core::ptr;

use crate::clock::timespec;
use crate::error::Errno;
use crate::fault::{self, Call};
use crate::prim::atomic::AtomicU32;
use crate::raw::call;

/// The reason why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Woken, interrupted by a signal, or spuriously: check the word again.
    Woken,
    /// The word did not have the expected value: the thread did not sleep.
    Changed,
    /// The deadline has passed.
    TimedOut,
}

/// Sleeps while `*word == expected`, until the word is woken or the monotonic clock reads
/// `deadline_ns`.
///
/// Blocks the kernel thread. With its wake it takes 4 µs on the same core, 20 µs and more from
/// another one.
///
/// # Panics
/// The kernel reports an error that only a broken pointer or a missing system call could cause.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> Wait {
    wait_by(libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG, word, expected, deadline_ns)
}

/// As [`wait`], on a word that several processes map. They wake it with [`wake_shared`].
///
/// # Panics
/// As for [`wait`].
pub fn wait_shared(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> Wait {
    wait_by(libc::FUTEX_WAIT_BITSET, word, expected, deadline_ns)
}

fn wait_by(operation: i32, word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> Wait {
    if fault::check(Call::FutexWait).is_err() {
        return Wait::Woken;
    }
    let deadline = deadline_ns.map(timespec);
    let time = deadline.as_ref().map_or(ptr::null(), ptr::from_ref);
    let every_bit = u32::MAX as usize;
    let arguments = [
        word.as_ptr() as usize,
        operation as usize,
        expected as usize,
        time as usize,
        0,
        every_bit,
    ];
    // SAFETY: `word` and `time` are valid during the call; the kernel only reads them.
    match unsafe { call(libc::SYS_futex, arguments) } {
        Ok(_) | Err(Errno::INTR) => Wait::Woken,
        Err(Errno::AGAIN) => Wait::Changed,
        Err(Errno::TIMEDOUT) => Wait::TimedOut,
        Err(errno) => panic!("futex wait: {errno:?}"),
    }
}

/// Wakes at most `count` threads that wait on `word`. Returns how many it woke.
///
/// # Panics
/// The kernel reports an error that only a missing system call could cause.
pub fn wake(word: &AtomicU32, count: u32) -> u32 {
    wake_by(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, word, count)
}

/// As [`wake`], for threads in [`wait_shared`], in any process.
///
/// # Panics
/// As for [`wake`].
pub fn wake_shared(word: &AtomicU32, count: u32) -> u32 {
    wake_by(libc::FUTEX_WAKE, word, count)
}

fn wake_by(operation: i32, word: &AtomicU32, count: u32) -> u32 {
    let count = count.min(i32::MAX as u32);
    let arguments = [word.as_ptr() as usize, operation as usize, count as usize];
    // SAFETY: a wake looks the address up in a table; for a shared word the kernel reads which page
    // it is on.
    match unsafe { call(libc::SYS_futex, arguments) } {
        Ok(woken) => woken as u32,
        Err(errno) => panic!("futex wake: {errno:?}"),
    }
}

/// Takes `word` if it is 0, with one system call: the kernel writes the caller's thread number to
/// it. Returns whether it did.
///
/// After another thread has failed to take it, the word has a mark (`FUTEX_WAITERS`). Storing 0
/// still frees it.
#[must_use]
pub fn try_take(word: &AtomicU32) -> bool {
    const OPERATION: usize = (libc::FUTEX_TRYLOCK_PI | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: `word` is valid; the kernel writes a number.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, OPERATION]) }.is_ok()
}

#[cfg(test)]
mod tests;
