//! Which virtual processor yields its CPU, which one moves, and for how long.

use proptest::prelude::{Strategy, proptest};

use super::{GRACE_NS, Patience, Rank, better_cpu, rank_of};
use crate::processor::space::table::Claim;

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let claim = |(index, (level, cpu))| Claim { index, level, cpu };
    proptest::collection::vec((0_u8..4, 0_usize..3), 0..6)
        .prop_map(move |claims| claims.into_iter().enumerate().map(claim).collect())
}

proptest! {
    #[test]
    fn exactly_the_most_urgent_of_a_cpu_are_not_outranked(all in claims()) {
        for &own in &all {
            let others = || all.iter().copied().filter(|other| other.index != own.index);
            let on_cpu: Vec<u8> = others().filter(|other| other.cpu == own.cpu).map(|other| other.level).collect();
            let expected = match on_cpu.iter().max() {
                None => Rank::Alone,
                Some(&most) if most > own.level => Rank::Outranked,
                Some(_) => Rank::Among,
            };
            assert_eq!(rank_of(own, others()), expected);
        }
    }

    #[test]
    fn moving_one_at_a_time_leaves_no_cpu_shared_while_another_is_free(all in claims()) {
        let mut all = all;
        let allowed = [0, 1, 2];
        let step = |all: &[Claim]| {
            all.iter().find_map(|&own| {
                let others = all.iter().copied().filter(|other| other.index != own.index);
                Some((own.index, better_cpu(own, &allowed, others)?))
            })
        };
        // Each move fills a free CPU.
        for _ in 0..allowed.len() {
            let Some((index, cpu)) = step(&all) else { break };
            all[index].cpu = cpu;
        }
        assert_eq!(step(&all), None);
        let count = |cpu| all.iter().filter(|claim| claim.cpu == cpu).count();
        let shared = allowed.iter().any(|&cpu| count(cpu) > 1);
        assert!(!shared || allowed.iter().all(|&cpu| count(cpu) > 0));
    }
}

#[test]
fn first_processor_on_a_cpu_stays() {
    let claim = |index, level| Claim { index, level, cpu: 0 };
    let to = |own, other| better_cpu(own, &[0, 1], [other].into_iter());
    assert_eq!(to(claim(0, 5), claim(1, 5)), None);
    assert_eq!(to(claim(1, 5), claim(0, 5)), Some(1));
    assert_eq!(to(claim(0, 5), claim(1, 6)), Some(1));
    assert_eq!(to(claim(1, 6), claim(0, 5)), None);
}

#[test]
fn standing_aside_is_bounded_then_pauses_then_begins_anew() {
    let mut patience = Patience::NEW;
    assert_eq!(patience.yield_until(false, 10, 100), None);
    assert_eq!(patience.yield_until(true, 20, 100), Some(120));
    assert_eq!(patience.yield_until(true, 119, 100), Some(120));
    assert_eq!(patience.yield_until(true, 120, 100), None);
    assert_eq!(patience.yield_until(true, 119 + GRACE_NS, 100), None);
    assert_eq!(patience.yield_until(true, 120 + GRACE_NS, 100), Some(220 + GRACE_NS));
    // It could run in between.
    assert_eq!(patience.yield_until(false, 150 + GRACE_NS, 100), None);
    assert_eq!(patience.yield_until(true, 160 + GRACE_NS, 100), Some(260 + GRACE_NS));
    let mut fresh = Patience::NEW;
    assert_eq!(fresh.yield_until(true, 1, u64::MAX), Some(u64::MAX));
    let mut never = Patience::NEW;
    assert_eq!(never.yield_until(true, 1, 0), None);
}
