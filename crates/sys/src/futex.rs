//! Kernel threads that sleep until a word changes.
//!
//! Private futexes, unless the name says otherwise: the word belongs to this address space.
#![expect(unsafe_code, reason = "system calls on a word")]

use core::ptr;

use crate::clock::timespec;
use crate::error::Errno;
use crate::fault::{self, Call};
use crate::prim::atomic::AtomicU32;
use crate::raw::call;

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Woken, or disturbed by a signal, or for no reason at all: look at the word again.
    Woken,
    /// The word did not hold what was expected: the thread never slept.
    Changed,
    /// The deadline has passed.
    TimedOut,
}

/// Sleeps while `*word == expected`, until somebody wakes the word or the monotonic clock reads `deadline_ns`.
///
/// Blocks the kernel thread. Same core 4 µs with its wake, another core 20 µs and more.
///
/// # Panics
/// When the kernel reports what only a broken pointer or a missing system call could cause.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> Wait {
    wait_by(libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG, word, expected, deadline_ns)
}

/// As [`wait`], on a word that other processes map too; they wake it by [`wake_shared`].
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

/// Wakes at most `count` threads that wait on `word`; how many it woke.
///
/// # Panics
/// When the kernel reports what only a missing system call could cause.
pub fn wake(word: &AtomicU32, count: u32) -> u32 {
    wake_by(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, word, count)
}

/// As [`wake`], for those in [`wait_shared`], in any process.
///
/// # Panics
/// As for [`wake`].
pub fn wake_shared(word: &AtomicU32, count: u32) -> u32 {
    wake_by(libc::FUTEX_WAKE, word, count)
}

fn wake_by(operation: i32, word: &AtomicU32, count: u32) -> u32 {
    let count = count.min(i32::MAX as u32);
    let arguments = [word.as_ptr() as usize, operation as usize, count as usize];
    // SAFETY: a wake looks the address up in a table; of a shared word it reads which page it is on.
    match unsafe { call(libc::SYS_futex, arguments) } {
        Ok(woken) => woken as u32,
        Err(errno) => panic!("futex wake: {errno:?}"),
    }
}

/// Takes `word`, if it is 0, by one system call: the kernel writes the caller's thread number into it. Whether it did.
///
/// Once another thread has tried in vain, the word says so (`FUTEX_WAITERS`); storing 0 frees it all the same.
#[must_use]
pub fn try_take(word: &AtomicU32) -> bool {
    const OPERATION: usize = (libc::FUTEX_TRYLOCK_PI | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: `word` is valid; what the kernel writes is a number.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, OPERATION]) }.is_ok()
}

#[cfg(test)]
mod tests;
