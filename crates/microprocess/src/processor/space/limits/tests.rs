//! The account of CPU time.

use proptest::prelude::proptest;

use super::{Account, WINDOW_NS};

/// Runs whenever it may, for `step_ns` at a time; returns the CPU time used in this many windows.
fn greedy(percent: u32, step_ns: u64, windows: u64) -> u64 {
    let mut account = Account::default();
    let (mut now_ns, mut used_ns) = (1, 0);
    let end_ns = now_ns + windows * WINDOW_NS;
    while now_ns < end_ns {
        match account.stop_until(now_ns, used_ns, percent) {
            Some(until_ns) => now_ns = until_ns,
            None => (now_ns, used_ns) = (now_ns + step_ns, used_ns + step_ns),
        }
    }
    used_ns
}

proptest! {
    #[test]
    fn a_greedy_process_gets_its_share_and_no_more(percent in 1_u32..100, step_ns in 10_000_u64..10_000_000) {
        let windows = 100;
        let share_ns = windows * WINDOW_NS / 100 * u64::from(percent);
        let used_ns = greedy(percent, step_ns, windows);
        // One late step in the last window is not compensated yet; a late step shortens the next
        // window.
        assert!(used_ns <= share_ns + windows.min(2) * step_ns + share_ns / 10, "{used_ns} of {share_ns}");
        assert!(used_ns + windows * step_ns >= share_ns / 2, "{used_ns} of {share_ns}");
    }
}

#[test]
fn earlier_use_does_not_count_and_unused_time_is_lost() {
    let mut account = Account::default();
    assert_eq!(account.stop_until(1_000, 7_000_000_000, 50), None);
    let half_ns = WINDOW_NS / 2;
    assert_eq!(account.stop_until(1_000 + half_ns, 7_000_000_000 + half_ns - 1, 50), None);
    let stop = account.stop_until(1_000 + half_ns, 7_000_000_000 + half_ns, 50);
    assert_eq!(stop, Some(1_000 + WINDOW_NS));
    // After a long idle time, no more than one window's share may be used at once.
    let later_ns = 1_000 + 50 * WINDOW_NS;
    assert_eq!(account.stop_until(later_ns, 7_000_000_000 + half_ns, 50), None);
    assert!(account.stop_until(later_ns + half_ns, 7_000_000_000 + 2 * half_ns, 50).is_some());
}
