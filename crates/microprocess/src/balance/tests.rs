//! What sharing promises, for all small cases.

use super::{COUNTED_MAX, share};
use crate::scheduler::Slice;

fn cases() -> impl Iterator<Item = (usize, usize, Slice)> {
    let slice = [Slice::Over, Slice::Left];
    (0..2 * COUNTED_MAX)
        .flat_map(|runnable| (0..8).map(move |idle| (runnable, idle)))
        .flat_map(move |(runnable, idle)| slice.map(|slice| (runnable, idle, slice)))
}

#[test]
fn nobody_gives_what_is_not_there_nor_to_nobody() {
    for (runnable, idle, slice) in cases() {
        let given = share(runnable, idle, slice);
        assert!(given <= runnable, "{runnable} {idle}");
        assert!(idle > 0 || given == 0);
    }
}

#[test]
fn a_pair_that_takes_turns_stays_together() {
    for idle in 0..8 {
        assert_eq!(share(1, idle, Slice::Left), 0);
    }
}

#[test]
fn whoever_waits_behind_a_long_one_moves_if_anybody_is_idle() {
    for (runnable, idle, _) in cases().filter(|&(runnable, idle, _)| runnable > 0 && idle > 0) {
        assert!(share(runnable, idle, Slice::Over) >= runnable.min(idle));
    }
}

#[test]
fn the_giver_keeps_an_even_share() {
    for (runnable, idle, _) in cases().filter(|&(runnable, ..)| runnable <= COUNTED_MAX) {
        let kept = runnable + 1 - share(runnable, idle, Slice::Left);
        assert!(kept >= (runnable + 1) / (idle + 1));
    }
}
