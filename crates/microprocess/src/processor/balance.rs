//! Decides when runnable microprocesses move from a busy virtual processor to idle ones, how many,
//! and when they are gathered again. The pure part of sharing.
//!
//! The busy virtual processor moves them itself, so that its queues need no lock. Moving does not
//! always pay. Two microprocesses that take turns on one virtual processor switch in some 10 ns and
//! take no locks. On two, each cache line that both write travels between cores, at some 50 to 100
//! ns each time.
//!
//! ```text
//!            long runs between switches; otherwise a trial, after ever longer pauses
//!   together ────────────────────────────────────────────────────────────────────► spread
//!            ◄────────────────────────────────────────────────────────────────────
//!              guarded objects travel: less than TRAVEL_NS between one and the next
//! ```
//! A microprocess that computes for long between switches gains by a second virtual processor,
//! whatever it shares. For microprocesses that switch all the time, only a trial can show whether
//! they gain. A failed trial costs some 100 µs, and doubles the pause before the next one.

use core::mem;

use crate::processor::scheduler::Runs;

/// The most waiting microprocesses that are counted, and so the most that are moved at a time.
pub(crate) const COUNTED_MAX: usize = 64;

/// How long a virtual processor is watched before an idle one is woken for it: several times what a
/// wake takes.
pub(crate) const WATCH_NS: u64 = 200_000;
/// After a request to share was admitted, requests are ignored for this long.
const REQUEST_INTERVAL_NS: u64 = 5_000_000;
/// The same, if the watch that followed the request found long runs.
const INTERVAL_AFTER_LONG_NS: u64 = 1_000_000;
/// Average runs longer than this gain by another virtual processor: moving a microprocess costs
/// less.
const LONG_RUN_NS: u64 = 20_000;
/// How long a virtual processor is busy before the first trial, how long a trial must last to count
/// as a success, and the pause after the first failure.
const TRIAL_NS: u64 = 4_000_000;
/// After this many failures the pause no longer doubles.
const FAILURES_MAX: u32 = 8;

/// Number of travels after which the clock is read.
pub(crate) const TRAVELS: u64 = 256;
/// A second virtual processor does not pay if guarded objects arrive from another one more often
/// than this.
const TRAVEL_NS: u64 = 400;

/// Whether [`TRAVELS`] objects that arrived within `took_ns` cost more than a second virtual
/// processor gains.
pub(crate) fn travels_too_much(took_ns: u64) -> bool {
    took_ns < TRAVELS * TRAVEL_NS
}

/// Schedules trials: when microprocesses that switch all the time are spread over two virtual
/// processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trials {
    /// Failed trials in a row. The present trial counts as failed until it has lasted for
    /// [`TRIAL_NS`].
    failures: u32,
    begun_ns: u64,
}

impl Trials {
    pub(crate) const fn new() -> Self {
        Self { failures: 0, begun_ns: 0 }
    }

    /// Whether a trial begins now, on a virtual processor that has been busy since `busy_ns` while
    /// others are idle.
    pub(crate) fn begin(&mut self, now_ns: u64, busy_ns: u64) -> bool {
        let pause_ns = TRIAL_NS << self.failures.saturating_sub(1);
        let begins = now_ns >= (busy_ns + TRIAL_NS).max(self.begun_ns + pause_ns);
        if begins {
            self.begun_ns = now_ns;
            self.failures = (self.failures + 1).min(FAILURES_MAX);
        }
        begins
    }

    /// Called while no virtual processor is idle. If the present trial has lasted long enough, it
    /// counts as a success.
    pub(crate) fn confirm(&mut self, now_ns: u64) {
        if now_ns >= self.begun_ns + TRIAL_NS {
            self.failures = 0;
        }
    }
}

/// Why a virtual processor is to share with idle ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Microprocesses run for long there, and one was seen to wait.
    Now,
    /// Microprocesses run for long there. The virtual processor itself checks whether one waits.
    Soon,
    /// To find out whether sharing pays.
    Trial,
}

/// What is known of the switches of one virtual processor while others are idle.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// Since when it has been busy; 0 before the first look.
    busy_ns: u64,
    /// The start of the present watch, and the count of switches then.
    since_ns: u64,
    switches: u64,
    /// The watch must be evaluated at its end, not some time later.
    is_close: bool,
    /// The watch began because of a request: a microprocess waits.
    is_asked: bool,
    /// Until when requests are ignored; 0: they are admitted.
    ignored_until_ns: u64,
}

impl Pace {
    /// Returns whether a request to share is admitted now, and until when requests are ignored.
    /// `asked`: there is a request.
    pub(crate) fn admit(&mut self, now_ns: u64, asked: bool) -> (bool, Option<u64>) {
        if now_ns < self.ignored_until_ns {
            return (false, Some(self.ignored_until_ns));
        }
        self.ignored_until_ns = if asked { now_ns + REQUEST_INTERVAL_NS } else { 0 };
        (asked, asked.then_some(self.ignored_until_ns))
    }

    /// Evaluates a busy virtual processor that has switched `switches` times so far. `asked`: a
    /// request was just admitted. Returns why idle ones are to be woken for it now, if they are,
    /// and the latest time of the next look.
    pub(crate) fn look(
        &mut self,
        now_ns: u64,
        switches: u64,
        asked: bool,
        trials: &mut Trials,
    ) -> (Option<Spread>, Option<u64>) {
        let begins = self.busy_ns == 0;
        if begins {
            self.busy_ns = now_ns;
        }
        if begins || asked {
            // Switches before this moment say nothing about the microprocesses of now.
            (self.since_ns, self.switches, self.is_close) = (now_ns, switches, true);
            self.is_asked = asked;
        }
        let watched_ns = now_ns - self.since_ns;
        if watched_ns < WATCH_NS {
            return (None, self.is_close.then_some(self.since_ns + WATCH_NS));
        }
        let runs = switches.wrapping_sub(self.switches).max(1);
        (self.since_ns, self.switches, self.is_close) = (now_ns, switches, false);
        let was_asked = mem::take(&mut self.is_asked);
        let spread = if watched_ns / runs >= LONG_RUN_NS {
            self.ignored_until_ns = self.ignored_until_ns.min(now_ns + INTERVAL_AFTER_LONG_NS);
            Some(if was_asked { Spread::Now } else { Spread::Soon })
        } else {
            trials.begin(now_ns, self.busy_ns).then_some(Spread::Trial)
        };
        (spread, None)
    }
}

/// How many of `runnable` waiting microprocesses to move to `idle` virtual processors. One more is
/// running.
pub(crate) fn share(runnable: usize, idle: usize, runs: Runs) -> usize {
    let runnable = runnable.min(COUNTED_MAX);
    match (runs, idle) {
        (_, 0) => 0,
        // Each microprocess that waits behind a long run gains.
        (Runs::Long, _) => runnable.div_ceil(2).max(runnable.min(idle)),
        // A single waiting one may alternate with the running one.
        (Runs::Short, _) if runnable < 2 => 0,
        // Even shares of the waiting ones and the running one, which stays.
        (Runs::Short, _) => (runnable + 1) * idle / (idle + 1),
    }
    .min(runnable)
}

#[cfg(test)]
mod tests;
