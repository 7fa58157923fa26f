//! The attention word of a virtual processor: what its holder is told, and whether it sleeps.
//!
//! ```text
//!   0 ── rest(IDLE or ASIDE) ──► the holder sleeps ── raise(bits): whoever finds it so wakes it ──► bits
//!   bits ── serve: swap 0 ──► done, one after the other
//! ```
//!
//! An idle virtual processor can be *claimed* by the holder of another one, which then touches what is the sleeping holder's:
//!
//! ```text
//!   IDLE ── claim: one exchange ──► IDLE | CLAIMED ── release ──► IDLE
//!                                        └── raise ──► CLAIMED | bits: the holder rises, and waits ── release ──► bits
//! ```
//!
//! **Invariant:** apart from [`CLAIMED`], the word is exactly [`IDLE`] (or [`ASIDE`]) while the holder sleeps and nobody is about
//! to wake it. A holder rests only from 0, so what was raised before is served first; what is raised afterwards finds the bit.
//!
//! **Invariant:** a claim begins only while the word is exactly [`IDLE`], and [`rise`] returns only while there is none. So what is
//! seen under a claim stays as it is until the release. (`tests/models/idle.rs` runs this file in every order.)

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::protocol::pause::let_others_run;

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
/// The holder of another virtual processor touches what is this one's, whose holder sleeps.
pub(crate) const CLAIMED: u32 = 1 << 29;
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

/// The holder sleeps no longer, whoever woke it; returns once nobody has the processor claimed.
///
/// A claim covers a few loads and stores. It lasts longer only where the host preempts the claimant in the middle.
pub(crate) fn rise(word: &AtomicU32, bit: u32) {
    let mut before = word.fetch_and(!bit, Ordering::SeqCst);
    while before & CLAIMED != 0 {
        let_others_run();
        before = word.load(Ordering::Acquire);
    }
}

/// Claims the processor of a holder that sleeps for want of work: on success the holder touches nothing until [`release`].
pub(crate) fn claim(word: &AtomicU32) -> bool {
    word.compare_exchange(IDLE, IDLE | CLAIMED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Ends a claim.
pub(crate) fn release(word: &AtomicU32) {
    word.fetch_and(!CLAIMED, Ordering::Release);
}

/// Whether `bits` say that the holder sleeps, and nobody is about to wake it.
pub(crate) fn is_at_rest(bits: u32) -> bool {
    matches!(bits & !CLAIMED, IDLE | ASIDE)
}

/// Whether `bits` say that the holder sleeps for want of work, and nobody is about to wake it.
pub(crate) fn is_idle(bits: u32) -> bool {
    bits & !CLAIMED == IDLE
}

/// Takes everything that was raised.
pub(crate) fn take(word: &AtomicU32) -> u32 {
    word.swap(0, Ordering::Acquire)
}
