//! What a holder without work does before it sleeps: it waits briefly for a peer that is about to
//! answer.
//!
//! | where the peer runs | what is best |
//! |---|---|
//! | another core | read the words for [`SPIN_NS`]: an answer then costs the transfer of a cache line |
//! | this core | hand the core over: the peer can run only if this thread does not. Spinning would delay the answer |
//! | nowhere: it is parked | sleep |
//!
//! The hand-over is `sched_yield`. It is cheaper than two sleeps and two wakes, but other threads
//! that want the core also run. After a hand-over that took long, the next [`HAND_OVERS_SKIPPED`]
//! ones are skipped: the holder sleeps, and the host's scheduler makes up for that.

use core::hint::spin_loop;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::scheduling::yield_to_host;

use super::Bell;
use super::pages::{Standing, cpu_of};
use crate::processor::kernel_thread::KernelThread;
use crate::processor::vp::Masked;

/// How long to wait for an answer from another core: about as long as a sleep and a wake take.
const SPIN_NS: u64 = 50_000;
/// Checks between two readings of the clock.
const LOOKS: u32 = 64;
/// How often to hand the core over before sleeping.
const YIELDS_MAX: u32 = 4;
/// If a hand-over took longer, other threads used the core.
const YIELD_LONG_NS: u64 = 200_000;
/// How many hand-overs are skipped after one that took long.
const HAND_OVERS_SKIPPED: u32 = 256;

/// A way to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitMode {
    Spin,
    HandOver,
    Sleep,
}

/// How to wait on `cpu` for a peer in this state. `woken`: the peer was just woken.
fn wait_mode(standing: Standing, woken: bool, cpu: usize) -> WaitMode {
    match standing {
        Standing::Awake(there) if there != cpu => WaitMode::Spin,
        Standing::Awake(_) => WaitMode::HandOver,
        Standing::Parked(there) if woken && there == cpu => WaitMode::HandOver,
        Standing::Parked(_) | Standing::Absent => WaitMode::Sleep,
    }
}

/// Waits briefly for the awaited words of `vp` if that is likely to pay. Returns whether there is a
/// microprocess to run or an attention bit to serve. Call as the holder, with events masked and an
/// empty queue.
pub(crate) fn spin_or_yield(vp: Masked<'_>) -> bool {
    let bell = &vp.bell;
    if !bell.awaits() {
        return false;
    }
    if bell.look(vp) {
        return true;
    }
    let Some((pages, number)) = bell.pages_and_number() else { return false };
    let cpu = cpu_of(&vp);
    let now =
        || bell.awaiting.latest(|peer, there, woken| wait_mode(peer.standing(there), woken, cpu));
    pages.publish_cpu(number, cpu);
    // Published again: a kernel thread that had not begun when it received the virtual processor
    // had no number then.
    pages.publish_holder(number, KernelThread::current().id());
    match now() {
        Some(WaitMode::Spin) => spin(vp),
        Some(WaitMode::HandOver) => hand_over(vp, || now() == Some(WaitMode::HandOver)),
        _ => false,
    }
}

/// Whether there is something to do now.
fn ready(vp: Masked<'_>) -> bool {
    vp.bell.look(vp) || vp.attention.load(Ordering::Relaxed) != 0
}

fn spin(vp: Masked<'_>) -> bool {
    let end_ns = monotonic_ns() + SPIN_NS;
    loop {
        for _ in 0..LOOKS {
            if ready(vp) {
                return true;
            }
            spin_loop();
        }
        if monotonic_ns() >= end_ns {
            return false;
        }
    }
}

fn hand_over(vp: Masked<'_>, worth_it: impl Fn() -> bool) -> bool {
    if vp.bell.skips_hand_over() {
        return false;
    }
    let begin_ns = monotonic_ns();
    for _ in 0..YIELDS_MAX {
        yield_to_host();
        if ready(vp) {
            vp.bell.judge(monotonic_ns() - begin_ns);
            return true;
        }
        if !worth_it() {
            break;
        }
    }
    vp.bell.judge(monotonic_ns() - begin_ns);
    false
}

impl Bell {
    /// Whether to skip this hand-over. Counts the skip.
    fn skips_hand_over(&self) -> bool {
        let left = self.hand_overs_to_skip.load(Ordering::Relaxed);
        self.hand_overs_to_skip.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// Decides from the duration of a hand-over whether to skip the next ones.
    fn judge(&self, took_ns: u64) {
        if took_ns > YIELD_LONG_NS {
            self.hand_overs_to_skip.store(HAND_OVERS_SKIPPED, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{WaitMode, wait_mode};
    use crate::wait::bell::Standing;

    #[test]
    fn holder_does_not_spin_on_the_core_of_its_peer() {
        for woken in [false, true] {
            assert_eq!(wait_mode(Standing::Awake(1), woken, 0), WaitMode::Spin);
            assert_eq!(wait_mode(Standing::Awake(0), woken, 0), WaitMode::HandOver);
            assert_eq!(wait_mode(Standing::Parked(1), woken, 0), WaitMode::Sleep);
            assert_eq!(wait_mode(Standing::Absent, woken, 0), WaitMode::Sleep);
        }
        assert_eq!(wait_mode(Standing::Parked(0), false, 0), WaitMode::Sleep);
        assert_eq!(
            wait_mode(Standing::Parked(0), true, 0),
            WaitMode::HandOver,
            "the peer is about to run on this core"
        );
    }
}
