//! Whole clusters from a seed: random programs that keep the rule of IBEC must see what a single
//! memory would show. The network loses, repeats, reorders and delays frames, and nodes are slow or
//! die.
//!
//! A failure names its seed. `KYOCHO_DSM_SEED=N cargo test -p kyocho-dsm --test cluster
//! a_seed_replays` replays it.

mod flight;
mod mutant;
mod oracle;
mod program;
mod random;
mod view;
mod world;

use core::panic::AssertUnwindSafe;
use kyocho_dsm::{DsmError, Scheme};
use mutant::Mutant;
use program::Program;
use random::Random;
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use world::{FaultRates, Report, World, tells_of};

const QUIET: FaultRates = FaultRates { loss: 0, repeat: 0, delay_max: 4, slow: 1, crash_at: None };
const STORMY: FaultRates =
    FaultRates { loss: 15, repeat: 10, delay_max: 40, slow: 1, crash_at: None };

fn simulate(
    seed: u64,
    nodes: u16,
    phases: usize,
    trouble: FaultRates,
    mutant: Mutant,
) -> Result<Report, String> {
    let mut random = Random(seed);
    let scheme = if random.percent(50) { Scheme::LogAtManager } else { Scheme::LogAtLastHolder };
    let snapshots = random.percent(67);
    let program = Program::generate(&mut random, nodes, snapshots, phases);
    run(World::new(random, program, 1, scheme, trouble, mutant))
}

fn run(world: World) -> Result<Report, String> {
    // A failed assertion of a node is a finding as well.
    catch_unwind(AssertUnwindSafe(|| world.run())).unwrap_or_else(|_| Err("panicked".into()))
}

/// A run whose parameters all come from the seed.
fn by_seed(seed: u64) -> Result<Report, String> {
    let mut random = Random(seed ^ 0x5EED);
    let nodes = 2 + random.below(7) as u16;
    let mut trouble = if random.percent(30) { QUIET } else { STORMY };
    trouble.slow = 1 + random.below(10);
    simulate(seed, nodes, 4, trouble, Mutant::None)
}

#[test]
fn clusters_see_one_memory() {
    let (mut reads, mut regions, mut refused, mut readmitted) = (0, 0, 0, 0);
    for seed in 0..1500 {
        let report = by_seed(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(report.ended.iter().all(|ended| *ended == Some(Ok(()))), "seed {seed}: {report:?}");
        (reads, readmitted) = (reads + report.reads, readmitted + report.readmitted);
        (regions, refused) = (regions + report.regions, refused + report.refused);
    }
    assert!(reads > 20_000, "only {reads} reads were compared");
    assert!(readmitted > 1000, "only {readmitted} written pages were reclaimed and used again");
    assert!(regions > 1000 && refused > 300, "{regions} regions were made, {refused} not");
}

/// Long enough that pages which are used repeatedly arrive unasked.
#[test]
fn clusters_that_cross_many_barriers_see_one_memory() {
    let (mut reads, mut unasked) = (0, 0);
    for seed in 0..100 {
        let nodes = 2 + (seed % 3) as u16;
        match simulate(seed, nodes, 40, FaultRates { delay_max: 10, ..STORMY }, Mutant::None) {
            Ok(report) => {
                reads += report.reads;
                unasked += report.brought.saturating_sub(report.asked);
            }
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    assert!(reads > 20_000 && unasked > 100, "{reads} reads, {unasked} pages came unasked");
}

/// Nodes with several threads, which share copies. Without snapshots, which are not stable then
/// (`docs/dsm-model.md`).
#[test]
fn clusters_of_threads_see_one_memory() {
    let mut reads = 0;
    for seed in 0..600 {
        let mut random = Random(seed ^ 0x7EAD);
        let (nodes, threads) = (1 + random.below(4) as u16, 2 + random.below(3) as u16);
        let scheme =
            if random.percent(50) { Scheme::LogAtManager } else { Scheme::LogAtLastHolder };
        let trouble = FaultRates { slow: 1 + random.below(10), ..STORMY };
        let program = Program::generate(&mut random, nodes * threads, false, 4);
        match run(World::new(random, program, threads, scheme, trouble, Mutant::None)) {
            Ok(report) => reads += report.reads,
            Err(why) => panic!("seed {seed}, {nodes} nodes of {threads} threads: {why}"),
        }
    }
    assert!(reads > 10_000, "only {reads} reads were compared");
}

#[test]
fn large_clusters_see_one_memory() {
    for (seed, nodes) in [(1, 16), (2, 32), (3, 64), (4, 64)] {
        let trouble = FaultRates { slow: 3, ..STORMY };
        if let Err(why) = simulate(seed, nodes, 2, trouble, Mutant::None) {
            panic!("seed {seed}, {nodes} nodes: {why}");
        }
    }
}

#[test]
fn a_seed_replays() {
    let seed = std::env::var("KYOCHO_DSM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(7);
    let first = by_seed(seed);
    assert_eq!(first, by_seed(seed));
    assert!(first.is_ok(), "seed {seed}: {first:?}");
}

#[test]
fn a_dead_node_is_an_error_that_names_it_on_every_survivor() {
    let mut notified = 0;
    for seed in 0..150 {
        let trouble = FaultRates { crash_at: Some(20 + seed * 13 % 900), ..STORMY };
        let report = simulate(seed, 2 + (seed % 5) as u16, 4, trouble, Mutant::None)
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let Some(crashed) = report.crashed else { continue };
        for (node, ended) in report.ended.iter().enumerate() {
            match ended {
                Some(Err(error)) => {
                    assert!(
                        tells_of(*error, crashed).is_some(),
                        "seed {seed}: node {node}: {error}"
                    );
                    notified += 1;
                }
                Some(Ok(())) => {}
                None => assert_eq!(node, crashed, "seed {seed}: node {node} did not end"),
            }
        }
    }
    assert!(notified > 100, "only {notified} survivors were notified");
}

/// One or two nodes leave properly before the others have crossed their last barrier, so these
/// never can.
#[test]
fn a_node_that_leaves_early_is_named_in_errors_of_all_others() {
    for seed in 0..300 {
        let mut random = Random(seed ^ 0x1EA5);
        let nodes = 2 + random.below(5) as u16;
        let snapshots = random.percent(67);
        let mut program = Program::generate(&mut random, nodes, snapshots, 4);
        let leavers = [random.below(nodes.into()) as usize, random.below(nodes.into()) as usize];
        let barriers = 1 + random.below(3) as usize;
        leavers.iter().for_each(|leaver| program.cut(*leaver as u16, barriers));
        let scheme =
            if random.percent(50) { Scheme::LogAtManager } else { Scheme::LogAtLastHolder };
        let trouble = if random.percent(50) { QUIET } else { STORMY };
        let report = run(World::new(random, program, 1, scheme, trouble, Mutant::None))
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for (node, ended) in report.ended.iter().enumerate() {
            match ended {
                Some(Ok(())) => assert!(leavers.contains(&node), "seed {seed}: node {node}"),
                Some(Err(DsmError::PeerLeft(peer, _))) => {
                    let is_known = leavers.contains(&usize::from(peer.0));
                    assert!(is_known && !leavers.contains(&node), "seed {seed}: node {node}");
                }
                other => panic!("seed {seed}: node {node}: {other:?}"),
            }
        }
    }
}

/// Whether any of many seeds reveals a mistake.
fn is_caught(mutant: &Mutant) -> bool {
    let slow = FaultRates { delay_max: 60, ..QUIET };
    let troubles = [QUIET, slow].into_iter().cycle();
    (0..600)
        .zip(troubles)
        .any(|(seed, trouble)| simulate(seed, 3, 4, trouble, mutant.clone()).is_err())
}

#[test]
fn mistakes_are_caught() {
    assert!(!is_caught(&Mutant::None), "a protocol without mistakes");
    for mutant in [
        Mutant::ForgottenStamp,
        Mutant::AppliedTwice(BTreeMap::new()),
        Mutant::StaleManager,
        Mutant::ForgottenUpdate,
        Mutant::LateRegion,
        Mutant::WrongBorder,
        Mutant::AdmittedAsClean,
    ] {
        assert!(is_caught(&mutant), "{mutant:?} went unnoticed");
    }
}
