//! The attention word of a virtual processor: what its holder is told, and whether it sleeps.
//!
//! ```text
//!   0 ── rest(IDLE or ASIDE) ──► the holder sleeps ── raise(bits): whoever finds it so wakes it ──► bits
//!   bits ── serve: swap 0 ──► done, one after the other
//! ```
//!
//! **Invariant:** the word is exactly [`IDLE`] (or [`ASIDE`]) while the holder sleeps and nobody is about to wake it. A holder rests only
//! from 0, so what was raised before is served first; what is raised afterwards finds the bit.

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

/// Something lies in the inbox.
pub(crate) const INBOX: u32 = 1;
/// A timer may be due.
pub(crate) const TIMERS: u32 = 2;
/// The time slice of what runs is over.
pub(crate) const PREEMPT: u32 = 4;
/// Somebody in another process may want the CPU more.
pub(crate) const RANK: u32 = 8;
/// The runtime stops.
pub(crate) const STOP: u32 = 16;
/// Another virtual processor is idle: share, to see what that gains.
pub(crate) const SHARE: u32 = 32;
/// Something became more urgent, or less.
pub(crate) const RECONSIDER: u32 = 1 << 6;
/// Another scheduler takes its place.
pub(crate) const INSTALL: u32 = 1 << 7;
/// What runs is killed and has not unwound yet.
pub(crate) const ORDERS: u32 = 1 << 8;
/// Everybody here goes where the objects come from.
pub(crate) const GATHER: u32 = 1 << 9;
/// Another virtual processor is idle, and who runs here runs for long: share.
pub(crate) const SPREAD: u32 = 1 << 10;
/// The holder stands aside for a more urgent process.
pub(crate) const ASIDE: u32 = 1 << 30;
/// The holder sleeps.
pub(crate) const IDLE: u32 = 1 << 31;

/// Who sleeps and is to be woken after a [`raise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sleeper {
    /// The holder, for want of work.
    Idle,
    /// The holder, for a more urgent process.
    Aside,
}

/// Sets `bits`; who is to be woken by the caller for it.
pub(crate) fn raise(word: &AtomicU32, bits: u32) -> Option<Sleeper> {
    let old = word.fetch_or(bits, Ordering::SeqCst);
    if old & (IDLE | ASIDE) == 0 {
        return None;
    }
    if old & ASIDE != 0 {
        return Some(Sleeper::Aside);
    }
    let cleared = word.fetch_and(!IDLE, Ordering::SeqCst) & IDLE != 0;
    cleared.then_some(Sleeper::Idle)
}

/// The holder begins to sleep, unless something was raised; `bit` is [`IDLE`] or [`ASIDE`].
pub(crate) fn rest(word: &AtomicU32, bit: u32) -> bool {
    word.compare_exchange(0, bit, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

/// The holder sleeps no longer, whoever woke it.
pub(crate) fn rise(word: &AtomicU32, bit: u32) {
    word.fetch_and(!bit, Ordering::SeqCst);
}

/// Takes everything that was raised.
pub(crate) fn take(word: &AtomicU32) -> u32 {
    word.swap(0, Ordering::Acquire)
}
