//! Barrier, and lock and increment, by nodes that are processes: for comparison with MPI.

use std::time::{Duration, Instant};

use kyocho_dsm::{BarrierKind, Dsm, LockId, Mode, NodeId, Placement, Settings};

use crate::figure;

/// Measures both figures; node 0 prints them.
pub fn run(turns: u32) {
    let mut dsm = Dsm::join(Settings::default()).expect("all nodes come");
    let times = [barrier(&mut dsm, turns), lock_increment(&mut dsm, turns)];
    if dsm.rank() == 0 {
        for (name, time) in ["node-barrier-us", "node-lock-us"].into_iter().zip(times) {
            figure(name, time.as_secs_f64() * 1e6);
        }
    }
    dsm.leave().expect("all live");
}

/// The time of a barrier.
pub fn barrier(dsm: &mut Dsm, turns: u32) -> Duration {
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    let begun = Instant::now();
    (0..turns).for_each(|_| dsm.barrier(BarrierKind::Ordinary).expect("all live"));
    begun.elapsed() / turns
}

/// The time of an increment of a counter under a lock, by all nodes; node 0 manages both.
pub fn lock_increment(dsm: &mut Dsm, turns: u32) -> Duration {
    let nodes = u32::from(dsm.nodes());
    let counter = dsm.allocate::<u64>(1, Placement::On(NodeId(0))).expect("room");
    let begun = Instant::now();
    for _ in 0..turns {
        dsm.acquire(LockId(0), Mode::Exclusive).expect("all live");
        let cell = &dsm.cells(&counter)[0];
        cell.set(cell.get() + 1);
        dsm.release(LockId(0)).expect("it is held");
    }
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    let time = begun.elapsed() / (nodes * turns);
    assert_eq!(dsm.cells(&counter)[0].get(), u64::from(nodes) * u64::from(turns));
    time
}
