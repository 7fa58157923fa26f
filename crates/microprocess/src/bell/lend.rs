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
//! A lender sleeps on the loan word and not on its bell, so who else wants it waits until the slice is over: `SLICE_NS`, and only as long as the
//! peer runs, or was just woken. What serves the call and sleeps in between is not lent anything when it goes on.
//!
//! Source: Paper 1, §4: the kernel thread of the caller, and so its priority, serves the call.

use kyocho_sys::pi::{self, Loan, Named};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::is_real_time;

use super::hall::Standing;
use super::{Bell, Peer};
use crate::kernel_thread::KernelThread;

/// How long a lender hears nobody but its debtor.
const SLICE_NS: u64 = 500_000;
/// Slices after which a peer that was woken, and still does not show that it is awake, is left alone.
const IN_VAIN_MAX: u32 = 64;

/// The word to lend by to a peer that stands so; `None` where it does not run, and so would not gain by it.
fn debtor(peer: &Peer, bell: u32, woken: bool) -> Option<Named> {
    let runs = match peer.standing(bell) {
        Standing::Awake(_) => true,
        Standing::Parked(_) => woken,
        Standing::Absent => false,
    };
    let (word, holder) = peer.0.debtor(bell).filter(|_| runs)?;
    (KernelThread::current().id() != Some(holder)).then(|| pi::name(word, holder))
}

impl Bell {
    /// Sleeps a slice and lends, if the caller's class is worth it and there is who will answer; whether it slept. By the holder, idle.
    pub(super) fn lend(&self, deadline_ns: Option<u64>) -> bool {
        if !self.awaits() || !is_real_time() {
            return false;
        }
        let named = self.awaiting.latest(debtor).flatten();
        let Some(named) = named else { return false };
        let slice_ns = (monotonic_ns() + SLICE_NS).min(deadline_ns.unwrap_or(u64::MAX));
        let loan = pi::lend(named, slice_ns);
        self.judge_loan(loan);
        loan != Loan::Refused
    }

    /// Learns from how a loan ended.
    fn judge_loan(&self, loan: Loan) {
        let in_vain = match loan {
            Loan::TimedOut => self.in_vain.load(Ordering::Relaxed) + 1,
            Loan::Repaid | Loan::Refused => IN_VAIN_MAX,
        };
        if in_vain >= IN_VAIN_MAX {
            self.awaiting.wake_is_over();
        }
        self.in_vain.store(in_vain % IN_VAIN_MAX, Ordering::Relaxed);
    }

    /// Ends what was lent to the calling thread, the holder.
    pub(super) fn repay(&self) {
        if let Some(((hall, number), me)) = self.hung().zip(KernelThread::current().id()) {
            pi::repay(hall.loan(number), me);
        }
    }
}
