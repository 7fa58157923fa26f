//! How an idle holder sleeps: on its bell, in its I/O port, or on its own wait word.

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;

use super::donate::Donation;
use super::{Bell, LOOK_AGAIN_NS};
use crate::data::deadline::Deadline;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::spin;
use crate::processor::vp::Masked;

/// Where the holder will sleep. Decided before the holder becomes visible as idle, so that a waker
/// knows how to wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// On the counter of its bell, which had this value.
    Bell(u32),
    /// In its I/O port. Holds the value of the bell's counter if a word is awaited.
    Port(Option<u32>),
    /// On the wait word of the kernel thread.
    Thread,
}

impl Masked<'_> {
    /// Decides where to sleep. Call as the holder, with events masked.
    pub(crate) fn settle_rest(self) -> Rest {
        let bell = &self.bell;
        let count = bell
            .pages_and_number()
            .filter(|_| bell.awaits())
            .map(|(pages, number)| pages.count(number));
        let rest = match (self.port(), count) {
            (Some(port), count) if port.is_pending() => Rest::Port(count),
            (_, Some(count)) => Rest::Bell(count),
            (Some(_), None) => Rest::Port(None),
            (None, None) => Rest::Thread,
        };
        bell.rests_here.store(u32::from(matches!(rest, Rest::Bell(_))), Ordering::SeqCst);
        rest
    }

    /// Sleeps as decided, until it is woken or until `deadline_ns`. Call as the holder, idle, with
    /// events masked.
    pub(crate) fn rest(self, thread: &KernelThread, rest: Rest, deadline_ns: Option<u64>) {
        let place = self.bell.pages_and_number();
        if let Some((pages, number)) = place {
            pages.publish_parked(number);
        }
        // Waiters are not made runnable here: while this virtual processor is idle, other holders
        // may take its parked microprocesses.
        if !self.bell.has_changed() {
            spin::rest(self.vp());
            self.sleep(thread, rest, deadline_ns);
            spin::wake(self.vp());
        }
        if let Some((pages, number)) = place {
            pages.publish_awake(number);
        }
    }

    fn sleep(self, thread: &KernelThread, rest: Rest, deadline_ns: Option<u64>) {
        if deadline_ns.is_some() {
            thread.be_exact();
        }
        let counter = || self.bell.pages_and_number().map(|(pages, number)| pages.counter(number));
        let again_ns = match self.bell.donate(deadline_ns) {
            Donation::Done => return,
            Donation::NotBefore(again_ns) => again_ns,
            Donation::None => monotonic_ns() + LOOK_AGAIN_NS,
        };
        match (rest, self.port()) {
            (Rest::Bell(count), _) => {
                let Some(counter) = counter() else { return };
                let until_ns = deadline_ns.unwrap_or(u64::MAX).min(again_ns);
                futex::wait_shared(counter, count, Some(until_ns));
            }
            (Rest::Port(count), Some(port)) => {
                let until_ns = if count.is_some() {
                    Some(deadline_ns.unwrap_or(u64::MAX).min(again_ns))
                } else {
                    deadline_ns
                };
                let bell = count.zip(counter()).map(|(count, counter)| (counter, count));
                port.wait(until_ns.map(Deadline::at_ns), bell);
            }
            (Rest::Port(_) | Rest::Thread, _) => {
                thread.idle(deadline_ns);
            }
        }
    }
}

impl Bell {
    /// Wakes the holder if it chose to sleep on the bell's counter ([`Rest::Bell`]), or keeps it
    /// from falling asleep there. Returns whether it chose that place; if not, the caller must wake
    /// it elsewhere. Any thread may call this, after it has cleared the holder's `IDLE` bit.
    pub(crate) fn rouse(&self) -> bool {
        if self.rests_here.load(Ordering::SeqCst) == 0 {
            return false;
        }
        if let Some((pages, number)) = self.pages_and_number() {
            pages.rouse(number);
        }
        true
    }
}
