//! When runnable microprocesses leave a busy virtual processor for idle ones, how many, and when they gather again: the pure part of sharing.
//!
//! The busy one gives, so that its queues need no lock. It is careful: two microprocesses that take turns on one virtual processor switch in some
//! 10 ns and take no locks; on two, each cache line that both write travels between cores, some 50 to 100 ns a time.
//!
//! ```text
//!            long runs between switches; or else a trial, after ever longer pauses
//!   together ────────────────────────────────────────────────────────────────────► spread
//!            ◄────────────────────────────────────────────────────────────────────
//!              guarded objects travel: less than TRAVEL_NS between one and the next
//! ```
//! Who computes for long between switches gains by a second processor, whatever it shares; who switches all the time may or may not, and nobody
//! knows but by trying. A trial that fails costs some 100 µs, and the pause after it doubles.

use core::mem;

use crate::processor::scheduler::Runs;

/// Most that are counted, and twice the most that are given at a time.
pub(crate) const COUNTED_MAX: usize = 64;

/// How long a virtual processor is watched before an idle one is woken for it: several times what waking takes.
pub(crate) const WATCH_NS: u64 = 200_000;
/// After a virtual processor was heard, it is not heard again for so long.
const DEAF_NS: u64 = 5_000_000;
/// The same where the watch that began then found long runs.
const DEAF_AFTER_LONG_NS: u64 = 1_000_000;
/// Runs that take longer on average gain by another virtual processor: moving one there costs less.
const LONG_RUN_NS: u64 = 20_000;
/// How long a virtual processor is busy before the first trial.
const TRIAL_NS: u64 = 4_000_000;
/// After so many failures the pause no longer doubles.
const FAILURES_MAX: u32 = 8;

/// Travels between looks at the clock.
pub(crate) const TRAVELS: u64 = 256;
/// Guarded objects that come from another virtual processor more often than this cost more than a second processor gives.
const TRAVEL_NS: u64 = 400;

/// Whether [`TRAVELS`] objects that came within `took_ns` cost more than they are worth.
pub(crate) fn travels_too_much(took_ns: u64) -> bool {
    took_ns < TRAVELS * TRAVEL_NS
}

/// When those who switch all the time are spread, for a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trials {
    /// How many failed, one after the other, the present one included until it has lasted.
    failures: u32,
    begun_ns: u64,
}

impl Trials {
    pub(crate) const fn new() -> Self {
        Self { failures: 0, begun_ns: 0 }
    }

    /// Whether one begins now, on a virtual processor that has been busy since `busy_ns` beside idle ones.
    pub(crate) fn begin(&mut self, now_ns: u64, busy_ns: u64) -> bool {
        let pause_ns = TRIAL_NS << self.failures.saturating_sub(1);
        let begins = now_ns >= (busy_ns + TRIAL_NS).max(self.begun_ns + pause_ns);
        if begins {
            self.begun_ns = now_ns;
            self.failures = (self.failures + 1).min(FAILURES_MAX);
        }
        begins
    }

    /// Nobody is idle.
    pub(crate) fn go_on(&mut self, now_ns: u64) {
        if now_ns >= self.begun_ns + TRIAL_NS {
            self.failures = 0;
        }
    }
}

/// Why a virtual processor is to share with idle ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Who runs there runs for long, and somebody was seen to wait.
    Now,
    /// Who runs there runs for long; whether anybody waits, it knows itself.
    Soon,
    /// To see whether it gains.
    Trial,
}

/// What is known of one virtual processor's switches, while others are idle.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// Since when it has been busy; 0: not yet seen.
    busy_ns: u64,
    /// The beginning of the present watch, and its count of switches then.
    since_ns: u64,
    switches: u64,
    /// The end of the watch is not to be missed.
    is_close: bool,
    /// The watch was begun for somebody who waits.
    is_asked: bool,
    /// Until when it is not heard; 0: it may ask.
    deaf_ns: u64,
}

impl Pace {
    /// Whether a virtual processor that may have `asked` is heard now, and until when it is not heard after this.
    pub(crate) fn hear(&mut self, now_ns: u64, asked: bool) -> (bool, Option<u64>) {
        if now_ns < self.deaf_ns {
            return (false, Some(self.deaf_ns));
        }
        self.deaf_ns = if asked { now_ns + DEAF_NS } else { 0 };
        (asked, asked.then_some(self.deaf_ns))
    }

    /// A look at a busy virtual processor that has switched `switches` times so far; `asked`: somebody came to wait there of late.
    /// Whether idle ones are to be woken for it now, and because of what; and by when to look again at the latest.
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
            // What it did before says nothing of those.
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
            self.deaf_ns = self.deaf_ns.min(now_ns + DEAF_AFTER_LONG_NS);
            Some(if was_asked { Spread::Now } else { Spread::Soon })
        } else {
            trials.begin(now_ns, self.busy_ns).then_some(Spread::Trial)
        };
        (spread, None)
    }
}

/// How many of `runnable` waiting microprocesses to give, to `idle` virtual processors, beside one that runs.
pub(crate) fn share(runnable: usize, idle: usize, runs: Runs) -> usize {
    let runnable = runnable.min(COUNTED_MAX);
    match (runs, idle) {
        (_, 0) => 0,
        // Whoever waits behind a long one gains.
        (Runs::Long, _) => runnable.div_ceil(2).max(runnable.min(idle)),
        // One that waits while another runs may be half of a pair.
        (Runs::Short, _) if runnable < 2 => 0,
        // Even shares of those who wait and the one who runs; it stays.
        (Runs::Short, _) => (runnable + 1) * idle / (idle + 1),
    }
    .min(runnable)
}

#[cfg(test)]
mod tests;
