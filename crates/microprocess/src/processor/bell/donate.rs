//! A real-time holder that sleeps because it waits for another process donates its scheduling
//! class to the kernel thread that will answer.
//!
//! ```text
//!   holder, SCHED_FIFO 50                      the peer's holder, time sharing, beside programs that want its core
//!   rings the bell
//!   donates: sleeps on the peer's word ───────► runs as SCHED_FIFO 50 (the host sees to it)
//!                                              ... serves, answers
//!   continues ◄──────────────────────────────  ends it
//! ```
//!
//! Without the donation the peer waits for its turn among the other programs: with four of them
//! that takes 20 ms and more. The level in the call itself only ranks microprocesses; it cannot
//! help a holder that the host does not run.
//!
//! A donor sleeps on the donation word and not on its bell, so other wakes reach it only at the end
//! of the slice, [`SLICE_NS`]. A recipient that sleeps meanwhile keeps the donated class, and runs
//! in it as soon as it wakes. After [`IN_VAIN_MAX`] slices in which the recipient slept, the donor
//! sleeps on its bell. It then checks every [`AGAIN_NS`] whether the recipient is awake.
//!
//! Source: Paper 1, §4: the kernel thread of the caller, and so its priority, serves the call.

use kyocho_sys::pi::{self, Named};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::is_real_time;

use super::pages::Standing;
use super::{Bell, Peer};
use crate::processor::kernel_thread::KernelThread;

/// How long a donor sleeps at a time, woken only by its recipient.
const SLICE_NS: u64 = 500_000;
/// After this many slices in vain, nothing is donated to a recipient that still sleeps.
const IN_VAIN_MAX: u32 = 64;
/// The interval after which such a recipient is checked again.
const AGAIN_NS: u64 = 4_000_000;

/// The outcome of an attempt to donate.
pub(super) enum Donation {
    /// There is no recipient, or nothing to donate: sleep in another way.
    None,
    /// There is nothing to donate before this time of the monotonic clock: sleep in another way, at
    /// most until then.
    NotBefore(u64),
    /// The caller has slept, and donated its class meanwhile.
    Done,
}

/// The recipient's donation word, and whether the recipient is awake.
fn recipient(peer: &Peer, bell: u32) -> Option<(Named, bool)> {
    let is_awake = match peer.standing(bell) {
        Standing::Awake(_) => true,
        Standing::Parked(_) => false,
        Standing::Absent => return None,
    };
    let (word, holder) = peer.0.recipient(bell)?;
    (KernelThread::current().id() != Some(holder)).then(|| (pi::name(word, holder), is_awake))
}

impl Bell {
    /// Sleeps for one slice and donates, if the caller is real-time and waits for a known peer.
    /// Call as the holder, idle.
    pub(super) fn donate(&self, deadline_ns: Option<u64>) -> Donation {
        if !self.awaits() || !is_real_time() {
            return Donation::None;
        }
        let known =
            |peer: &Peer, bell, in_vain| recipient(peer, bell).map(|found| (found, in_vain));
        let Some(((named, is_awake), in_vain)) = self.awaiting.latest_call(known).flatten() else {
            return Donation::None;
        };
        let now_ns = monotonic_ns();
        if !is_awake && in_vain >= IN_VAIN_MAX {
            return Donation::NotBefore(now_ns + AGAIN_NS);
        }
        let slice_ns = (now_ns + SLICE_NS).min(deadline_ns.unwrap_or(u64::MAX));
        if pi::donate(named, slice_ns) == pi::DonationEnd::Refused {
            return Donation::NotBefore(now_ns + AGAIN_NS);
        }
        // A recipient that sleeps ends no donation, whatever the word says.
        self.awaiting.judge_donation(!is_awake);
        Donation::Done
    }

    /// Ends a donation to the calling thread, which is the holder.
    pub(crate) fn end_donations(&self) {
        if let Some(((pages, number), me)) =
            self.pages_and_number().zip(KernelThread::current().id())
        {
            pi::end_donations(pages.donation(number), me);
        }
    }
}
