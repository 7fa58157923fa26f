//! The rules of sharing, for all small cases.

use super::{
    COUNTED_MAX, FAILURES_MAX, INTERVAL_AFTER_LONG_NS, LONG_RUN_NS, Pace, REQUEST_INTERVAL_NS,
    Spread, TRAVEL_NS, TRAVELS, TRIAL_NS, Trials, WATCH_NS, share, travels_too_much,
};
use crate::processor::scheduler::Runs;

fn cases() -> impl Iterator<Item = (usize, usize, Runs)> {
    let runs = [Runs::Long, Runs::Short];
    (0..2 * COUNTED_MAX)
        .flat_map(|runnable| (0..8).map(move |idle| (runnable, idle)))
        .flat_map(move |(runnable, idle)| runs.map(|runs| (runnable, idle, runs)))
}

#[test]
fn moves_are_bounded_by_what_waits_and_what_is_idle() {
    for (runnable, idle, runs) in cases() {
        let given = share(runnable, idle, runs);
        assert!(given <= runnable, "{runnable} {idle}");
        assert!(idle > 0 || given == 0);
    }
}

#[test]
fn a_pair_that_takes_turns_stays_together() {
    for idle in 0..8 {
        assert_eq!(share(1, idle, Runs::Short), 0);
    }
}

#[test]
fn waiters_behind_a_long_run_move_if_a_processor_is_idle() {
    for (runnable, idle, _) in cases().filter(|&(runnable, idle, _)| runnable > 0 && idle > 0) {
        assert!(share(runnable, idle, Runs::Long) >= runnable.min(idle));
    }
}

#[test]
fn busy_processor_keeps_an_even_share() {
    for (runnable, idle, _) in cases().filter(|&(runnable, ..)| runnable <= COUNTED_MAX) {
        let kept = runnable + 1 - share(runnable, idle, Runs::Short);
        assert!(kept >= (runnable + 1) / (idle + 1));
    }
}

const START_NS: u64 = 1_000_000_000;

/// Looks at a virtual processor that makes `switches` in every `step_ns`, until `end_ns` after the
/// start. Returns the times at which idle ones were to be woken.
fn spreads(step_ns: u64, switches: u64, end_ns: u64, trials: &mut Trials) -> Vec<u64> {
    let mut pace = Pace::default();
    (0..=end_ns / step_ns)
        .filter(|turn| {
            pace.look(START_NS + turn * step_ns, turn * switches, false, trials).0.is_some()
        })
        .map(|turn| turn * step_ns)
        .collect()
}

#[test]
fn long_runs_are_spread_after_a_short_watch() {
    let switches = WATCH_NS / LONG_RUN_NS;
    assert_eq!(spreads(WATCH_NS, switches, WATCH_NS, &mut Trials::new()), [WATCH_NS]);
    assert!(spreads(WATCH_NS, switches + 1, WATCH_NS, &mut Trials::new()).is_empty());
    assert_eq!(spreads(WATCH_NS, 0, WATCH_NS, &mut Trials::new()), [WATCH_NS]);
}

#[test]
fn trials_of_frequent_switching_come_at_growing_intervals() {
    let begun = spreads(WATCH_NS, 10_000, 1_500_000_000, &mut Trials::new());
    assert_eq!(begun[0], TRIAL_NS);
    let pauses: Vec<u64> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let doubled: Vec<u64> = (0..FAILURES_MAX).map(|failures| TRIAL_NS << failures).collect();
    assert_eq!(pauses, doubled[..pauses.len()]);
    assert!(pauses.len() > 6, "{begun:?}");
}

#[test]
fn a_trial_that_lasts_makes_the_next_one_come_soon() {
    let mut trials = Trials::new();
    assert!((0..20).all(|turn| {
        let now_ns = START_NS + turn * (TRIAL_NS << FAILURES_MAX);
        trials.begin(now_ns, START_NS - TRIAL_NS)
    }));
    let now_ns = START_NS + 19 * (TRIAL_NS << FAILURES_MAX);
    let mut failed = trials;
    failed.confirm(now_ns + TRIAL_NS - 1);
    assert!(!failed.begin(now_ns + TRIAL_NS, START_NS), "the last trial has not lasted yet");
    trials.confirm(now_ns + TRIAL_NS);
    assert!(trials.begin(now_ns + TRIAL_NS, START_NS));
}

#[test]
fn request_begins_a_new_watch_at_bounded_intervals() {
    let (mut pace, mut trials) = (Pace::default(), Trials::new());
    assert_eq!(pace.look(START_NS, 0, false, &mut trials), (None, Some(START_NS + WATCH_NS)));
    // Switches often, until a microprocess that computes begins to wait.
    let asked_ns = START_NS + WATCH_NS - 1;
    let ignored_until_ns = asked_ns + REQUEST_INTERVAL_NS;
    assert_eq!(pace.admit(asked_ns, true), (true, Some(ignored_until_ns)));
    let end_ns = asked_ns + WATCH_NS;
    assert_eq!(pace.look(asked_ns, 50_000, true, &mut trials), (None, Some(end_ns)));
    assert_eq!(
        pace.admit(end_ns, true),
        (false, Some(ignored_until_ns)),
        "the interval has not passed"
    );
    assert_eq!(
        pace.look(end_ns, 90_000, false, &mut trials),
        (None, None),
        "the microprocesses switch often"
    );
    assert_eq!(pace.admit(ignored_until_ns - 1, true), (false, Some(ignored_until_ns)));
    assert_eq!(
        pace.admit(ignored_until_ns, true),
        (true, Some(ignored_until_ns + REQUEST_INTERVAL_NS)),
        "the interval has passed"
    );
    assert_eq!(pace.admit(ignored_until_ns + REQUEST_INTERVAL_NS, false), (false, None));
}

#[test]
fn request_that_found_long_runs_shortens_the_interval() {
    let (mut pace, mut trials) = (Pace::default(), Trials::new());
    assert_eq!(pace.look(START_NS, 0, false, &mut trials), (None, Some(START_NS + WATCH_NS)));
    assert_eq!(pace.admit(START_NS, true), (true, Some(START_NS + REQUEST_INTERVAL_NS)));
    pace.look(START_NS, 0, true, &mut trials);
    let end_ns = START_NS + WATCH_NS;
    assert_eq!(pace.look(end_ns, 1, false, &mut trials), (Some(Spread::Now), None));
    let ignored_until_ns = end_ns + INTERVAL_AFTER_LONG_NS;
    assert_eq!(pace.admit(end_ns, true), (false, Some(ignored_until_ns)));
    assert!(pace.admit(ignored_until_ns, true).0);
    // There is no request, so the running microprocess is not interrupted.
    let later_ns = ignored_until_ns + REQUEST_INTERVAL_NS;
    assert_eq!(pace.look(later_ns, 1, false, &mut trials), (Some(Spread::Soon), None));
}

#[test]
fn frequent_travel_is_distinguished_from_occasional_travel() {
    assert!(travels_too_much(TRAVELS * TRAVEL_NS - 1));
    assert!(!travels_too_much(TRAVELS * TRAVEL_NS));
}
