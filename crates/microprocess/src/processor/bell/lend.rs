//! A real-time holder that sleeps because it waits for another process lends its class to who will answer.
//!
//! ```text
//!   holder, SCHED_FIFO 50                      the peer's holder, time sharing, beside programs that want its core
//!   rings the bell
//!   lends: sleeps on the peer's loan word ───► runs as SCHED_FIFO 50 (the host sees to it)
//!                                              ... serves, answers
//!   goes on ◄────────────────────────────────  repays
//! ```
//!
//! Without this the peer takes its turn among the others: four of them take 20 ms and more. Levels travel in the call itself and rule
//! among microprocesses; they cannot help a holder that does not run.
//!
//! A lender sleeps on the loan word and not on its bell, so who else wants it waits until the slice is over: [`SLICE_NS`]. A debtor that sleeps
//! in between keeps what it was lent, and runs in that class as soon as it wakes; after [`IN_VAIN_MAX`] slices of that the lender sleeps on its
//! bell, and looks each [`AGAIN_NS`] whether the debtor goes on.
//!
//! Source: Paper 1, §4: the kernel thread of the caller, and so its priority, serves the call.

use kyocho_sys::pi::{self, Loan, Named};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::is_real_time;

use super::hall::Standing;
use super::{Bell, Peer};
use crate::processor::kernel_thread::KernelThread;

/// How long a lender hears nobody but its debtor.
const SLICE_NS: u64 = 500_000;
/// Slices after which a debtor that sleeps is lent nothing before it goes on.
const IN_VAIN_MAX: u32 = 64;
/// How soon after that it is looked at again.
const AGAIN_NS: u64 = 4_000_000;

/// What came of an attempt to lend.
pub(super) enum Lending {
    /// There is nobody to lend to, or nothing: sleep otherwise.
    None,
    /// Nobody to lend to before this time, by the monotonic clock: sleep otherwise, not longer.
    NotBefore(u64),
    /// The caller has slept, and lent meanwhile.
    Done,
}

/// The word to lend by to who will answer, and whether that one is awake.
fn debtor(peer: &Peer, bell: u32) -> Option<(Named, bool)> {
    let is_awake = match peer.standing(bell) {
        Standing::Awake(_) => true,
        Standing::Parked(_) => false,
        Standing::Absent => return None,
    };
    let (word, holder) = peer.0.debtor(bell)?;
    (KernelThread::current().id() != Some(holder)).then(|| (pi::name(word, holder), is_awake))
}

impl Bell {
    /// Sleeps a slice and lends, if the caller's class is worth it and there is who will answer. By the holder, idle.
    pub(super) fn lend(&self, deadline_ns: Option<u64>) -> Lending {
        if !self.awaits() || !is_real_time() {
            return Lending::None;
        }
        let known = |peer: &Peer, bell, in_vain| debtor(peer, bell).map(|found| (found, in_vain));
        let Some(((named, is_awake), in_vain)) = self.awaiting.latest_call(known).flatten() else {
            return Lending::None;
        };
        let now_ns = monotonic_ns();
        if !is_awake && in_vain >= IN_VAIN_MAX {
            return Lending::NotBefore(now_ns + AGAIN_NS);
        }
        let slice_ns = (now_ns + SLICE_NS).min(deadline_ns.unwrap_or(u64::MAX));
        if pi::lend(named, slice_ns) == Loan::Refused {
            return Lending::NotBefore(now_ns + AGAIN_NS);
        }
        // Who sleeps repays nothing, whatever the word says.
        self.awaiting.judge_loan(!is_awake);
        Lending::Done
    }

    /// Ends what was lent to the calling thread, the holder.
    pub(crate) fn repay(&self) {
        if let Some(((hall, number), me)) = self.hung().zip(KernelThread::current().id()) {
            pi::repay(hall.loan(number), me);
        }
    }
}
