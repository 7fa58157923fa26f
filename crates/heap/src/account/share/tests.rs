//! Shares on simulated processors with strict priorities and round robin among equals.

use super::{BURST_NS, LEAD_MAX_NS, after, floor, priority};
use kyocho_microprocess::Priority;
use proptest::prelude::{Strategy, prop_assert, proptest};

const SLICE_NS: u64 = 5_000_000;

/// A user: the share, and in how many of a hundred turns it has work.
#[derive(Clone, Copy, Debug)]
struct User {
    share: u32,
    wants: u64,
}

/// The running time of each user after `slices` time slices of one processor.
fn run(users: &[User], slices: u64) -> Vec<u64> {
    let mut at_ns = vec![0; users.len()];
    let mut ran_ns = vec![0; users.len()];
    let mut turn = vec![0; users.len()];
    let mut floor_ns = 0;
    for now in 0..slices {
        let wants: Vec<usize> =
            (0..users.len()).filter(|&user| now % 100 < users[user].wants).collect();
        floor_ns = floor(floor_ns, at_ns.iter().copied());
        let level = |user: usize| priority(Priority::NORMAL, at_ns[user], floor_ns).level();
        let next = wants.into_iter().max_by_key(|&user| (level(user), u64::MAX - turn[user]));
        let Some(user) = next else { continue };
        turn[user] = now + 1;
        ran_ns[user] += SLICE_NS;
        at_ns[user] = after(at_ns[user], floor_ns, SLICE_NS, users[user].share);
    }
    ran_ns
}

#[test]
fn a_nearly_idle_user_does_not_change_the_ratio_of_the_others() {
    let greedy = |share| User { share, wants: 100 };
    let ran = run(&[greedy(1), greedy(4), User { share: 1, wants: 1 }], 10_000);
    let ratio = ran[1] as f64 / ran[0] as f64;
    assert!((3.8..4.2).contains(&ratio), "{ran:?}");
}

#[test]
fn an_idle_account_saves_nothing_up() {
    let floor_ns = floor(0, [LEAD_MAX_NS / 2].into_iter());
    let come = after(0, floor_ns, 0, 1);
    assert_eq!(come, floor_ns);
    assert_eq!(priority(Priority::NORMAL, come, floor_ns), Priority::NORMAL);
}

#[test]
fn the_greater_the_lead_the_less_urgent() {
    let level = |lead| priority(Priority::NORMAL, 7 + lead, 7).level();
    assert_eq!(level(BURST_NS - 1), Priority::NORMAL.level());
    let levels: Vec<u8> = (1..=8).map(|steps| level(steps * BURST_NS)).collect();
    assert_eq!(levels, [7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(priority(Priority::LOWEST, u64::MAX, 0), Priority::LOWEST);
}

proptest! {
    /// A user with unlimited demand gets at least nine tenths of its share.
    #[test]
    fn every_user_gets_its_share(
        users in proptest::collection::vec((1_u32..10, 1_u64..=100), 2..6)
            .prop_map(|all| all.into_iter().map(|(share, wants)| User { share, wants }).collect::<Vec<_>>()),
    ) {
        const SLICES: u64 = 20_000;
        let ran = run(&users, SLICES);
        let shares: u32 = users.iter().map(|user| user.share).sum();
        for (user, ran_ns) in users.iter().zip(&ran).filter(|(user, _)| user.wants == 100) {
            let share_ns = SLICES * SLICE_NS * u64::from(user.share) / u64::from(shares);
            prop_assert!(*ran_ns * 10 >= share_ns * 9, "{users:?}: {ran:?}");
        }
    }

    /// The floor never falls, and no account leads it by more than the maximum.
    #[test]
    fn the_floor_only_rises(before_ns in 0_u64..1 << 40, active in proptest::collection::vec(0_u64..1 << 40, 0..6)) {
        let floor_ns = floor(before_ns, active.iter().copied());
        prop_assert!(floor_ns >= before_ns);
        prop_assert!(active.iter().all(|&at_ns| at_ns.saturating_sub(floor_ns) <= LEAD_MAX_NS));
    }
}
