//! The attention word of a virtual processor: requests to its holder, and whether the holder
//! sleeps.
//!
//! ```text
//!   0 ── rest(IDLE or CPU_YIELDED) ──► the holder sleeps ── raise(bits): the first one to raise wakes it ──► bits
//!   bits ── serve: swap 0 ──► the holder serves them one by one
//! ```
//!
//! The holder of one virtual processor can *claim* another one that is idle. It may then use what
//! otherwise belongs to the sleeping holder:
//!
//! ```text
//!   IDLE ── claim: one exchange ──► IDLE | CLAIMED ── release ──► IDLE
//!                                        └── raise ──► CLAIMED | bits: the holder wakes, and waits ── release ──► bits
//! ```
//!
//! **Invariant:** apart from [`CLAIMED`], the word is exactly [`IDLE`] (or [`CPU_YIELDED`]) while
//! the holder sleeps and no thread is about to wake it. A holder falls asleep only from 0, so bits
//! raised earlier are served first. A thread that raises bits later finds the sleep bit, and wakes
//! the holder.
//!
//! **Invariant:** a claim begins only while the word is exactly [`IDLE`], and [`rise`] returns only
//! when there is no claim. So what the claimant sees does not change until the release.
//! (`tests/models/idle.rs` runs this file in every order.)

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::protocol::pause::let_others_run;

/// The inbox is not empty.
pub(crate) const INBOX: u32 = 1;
/// A timer may be due.
pub(crate) const TIMERS: u32 = 2;
/// The time slice of the running microprocess is over.
pub(crate) const PREEMPT: u32 = 4;
/// A virtual processor of another process may have a greater right to the CPU.
pub(crate) const RANK: u32 = 8;
/// The runtime stops.
pub(crate) const STOP: u32 = 16;
/// Another virtual processor is idle: move work to it as a trial, to see whether that pays.
pub(crate) const SHARE: u32 = 32;
/// A microprocess became more urgent, or less.
pub(crate) const RECONSIDER: u32 = 1 << 6;
/// A new scheduler is to be installed.
pub(crate) const INSTALL: u32 = 1 << 7;
/// The running microprocess is killed and has not unwound yet.
pub(crate) const ORDERS: u32 = 1 << 8;
/// All microprocesses here are to move to the virtual processor whose objects they use.
pub(crate) const GATHER: u32 = 1 << 9;
/// Another virtual processor is idle, and the running microprocess runs for long: move work to the
/// idle one.
pub(crate) const SPREAD: u32 = 1 << 10;
/// The holder of another virtual processor uses the data of this one. This one's holder sleeps, or
/// has been woken and waits until the claim ends.
pub(crate) const CLAIMED: u32 = 1 << 29;
/// The holder has yielded its CPU to a more urgent process.
pub(crate) const CPU_YIELDED: u32 = 1 << 30;
/// The holder sleeps because it has no work.
pub(crate) const IDLE: u32 = 1 << 31;

/// A sleeping holder that must be woken after a [`raise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sleeper {
    /// It sleeps because it has no work.
    Idle,
    /// It sleeps because a more urgent process has the CPU.
    CpuYielded,
}

/// Sets `bits`; returns which sleeper the caller must wake.
pub(crate) fn raise(word: &AtomicU32, bits: u32) -> Option<Sleeper> {
    let old = word.fetch_or(bits, Ordering::SeqCst);
    if old & (IDLE | CPU_YIELDED) == 0 {
        return None;
    }
    if old & CPU_YIELDED != 0 {
        return Some(Sleeper::CpuYielded);
    }
    let cleared = word.fetch_and(!IDLE, Ordering::SeqCst) & IDLE != 0;
    cleared.then_some(Sleeper::Idle)
}

/// The holder begins to sleep, if no bit is raised; returns whether it does. `bit` is [`IDLE`] or
/// [`CPU_YIELDED`].
pub(crate) fn rest(word: &AtomicU32, bit: u32) -> bool {
    word.compare_exchange(0, bit, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// The holder no longer sleeps, whichever thread woke it. Returns once the virtual processor is not
/// claimed.
///
/// A claim covers a few loads and stores. It lasts longer only if the host preempts the claimant
/// during it.
pub(crate) fn rise(word: &AtomicU32, bit: u32) {
    let mut before = word.fetch_and(!bit, Ordering::SeqCst);
    while before & CLAIMED != 0 {
        let_others_run();
        before = word.load(Ordering::Acquire);
    }
}

/// Claims the virtual processor of a holder that sleeps because it has no work. On success the
/// holder uses nothing of it until [`release`].
pub(crate) fn claim(word: &AtomicU32) -> bool {
    word.compare_exchange(IDLE, IDLE | CLAIMED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Ends a claim.
pub(crate) fn release(word: &AtomicU32) {
    word.fetch_and(!CLAIMED, Ordering::Release);
}

/// Whether `bits` say that the holder sleeps, and no thread is about to wake it.
pub(crate) fn is_at_rest(bits: u32) -> bool {
    matches!(bits & !CLAIMED, IDLE | CPU_YIELDED)
}

/// Whether `bits` say that the holder sleeps because it has no work, and no thread is about to wake
/// it.
pub(crate) fn is_idle(bits: u32) -> bool {
    bits & !CLAIMED == IDLE
}

/// Takes all bits that were raised.
pub(crate) fn take(word: &AtomicU32) -> u32 {
    word.swap(0, Ordering::Acquire)
}
