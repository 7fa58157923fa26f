//! Locks by the paper's two schemes, and non-exclusive readers.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use kyocho_dsm::transport::Traffic;
use kyocho_dsm::{BarrierKind, Dsm, LockId, Mode, NodeId, Placement, Scheme};

use crate::cluster::{LOCKS, on_nodes};
use crate::figure;

/// How long a reader holds its lock in the test of readers.
const LOOK: Duration = Duration::from_millis(2);

/// The assignment of locks and counters to nodes.
#[derive(Clone, Copy)]
struct Work {
    nodes: u16,
    /// By node: the locks that it takes, each in turn.
    locks_of: fn(u16) -> Range<u32>,
    /// The manager of a lock, and that of its counter's page.
    manager_of: fn(u32) -> u16,
    page_manager_of: fn(u32) -> u16,
}

/// The result of all nodes together.
struct Result {
    time: Duration,
    messages: u64,
    bytes: u64,
}

/// All figures of locks.
pub fn run(turns: u32) {
    let two_workers: fn(u16) -> Range<u32> = |node| if node < 2 { 0..1 } else { 0..0 };
    let own = Work { nodes: 2, locks_of: two_workers, manager_of: |_| 0, page_manager_of: |_| 0 };
    let other = Work { nodes: 3, manager_of: |_| 2, ..own };
    compare("figure-1-worker", own, turns);
    compare("figure-1-other", other, turns);
    let all: fn(u16) -> Range<u32> = |_| 0..8;
    let one = Work { nodes: 8, locks_of: all, manager_of: |_| 0, page_manager_of: |_| 0 };
    compare("figure-2-one", one, turns / 10);
    let spread = Work { manager_of: |lock| lock as u16 % 8, ..one };
    compare("figure-2-spread", spread, turns / 10);
    // Pairs of nodes share a lock and its counter, as pc9 and pc10 did.
    let pair: fn(u16) -> Range<u32> = |node| u32::from(node / 2)..u32::from(node / 2) + 1;
    let first_of_pair: fn(u32) -> u16 = |lock| (2 * lock % 8) as u16;
    let one = Work { nodes: 8, locks_of: pair, manager_of: first_of_pair, page_manager_of: |_| 0 };
    compare("table-3-one", one, turns / 2);
    compare("table-3-spread", Work { page_manager_of: first_of_pair, ..one }, turns / 2);
    let seconds = |mode| readers(mode, turns / 20).as_secs_f64();
    figure("readers", seconds(Mode::Exclusive) / seconds(Mode::NonExclusive));
}

/// Old scheme and new one, one after the other.
fn compare(name: &str, work: Work, turns: u32) {
    let turns = turns.max(1);
    let [old, new] = [Scheme::LogAtLastHolder, Scheme::LogAtManager]
        .map(|scheme| increments(work, scheme, turns));
    let operations: usize = (0..work.nodes).map(|node| (work.locks_of)(node).len()).sum();
    let operations = operations as f64 * f64::from(turns);
    figure(name, old.time.as_secs_f64() / new.time.as_secs_f64());
    figure(&format!("{name}-us"), new.time.as_secs_f64() * 1e6 / operations);
    figure(&format!("{name}-messages"), new.messages as f64 / operations);
    figure(&format!("{name}-bytes"), new.bytes as f64 / operations);
}

/// Increments under locks, checked.
fn increments(work: Work, scheme: Scheme, turns: u32) -> Result {
    let all = on_nodes(work.nodes, scheme, |dsm| increments_of_node(dsm, work, turns));
    let add = |one: Result, other: Result| Result {
        time: one.time.max(other.time),
        messages: one.messages + other.messages,
        bytes: one.bytes + other.bytes,
    };
    all.into_iter().reduce(add).expect("there are nodes")
}

fn increments_of_node(mut dsm: Dsm, work: Work, turns: u32) -> Result {
    let counters: Vec<_> = (0..LOCKS)
        .map(|lock| {
            let placement = Placement::On(NodeId((work.page_manager_of)(lock)));
            dsm.allocate::<u64>(1, placement).expect("room")
        })
        .collect();
    for lock in 0..LOCKS {
        dsm.move_lock(LockId(lock), NodeId((work.manager_of)(lock))).expect("in range");
    }
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    let (before, begun): (Traffic, _) = (dsm.statistics().traffic, Instant::now());
    for _ in 0..turns {
        for lock in (work.locks_of)(dsm.rank()) {
            dsm.acquire(LockId(lock), Mode::Exclusive).expect("all live");
            let counter = &dsm.cells(&counters[lock as usize])[0];
            counter.set(counter.get() + 1);
            dsm.release(LockId(lock)).expect("it is held");
        }
    }
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    let (time, after) = (begun.elapsed(), dsm.statistics().traffic);
    let taken =
        |lock| (0..work.nodes).filter(|node| (work.locks_of)(*node).contains(&lock)).count();
    for lock in 0..LOCKS {
        let expected = u64::from(turns) * taken(lock) as u64;
        assert_eq!(dsm.cells(&counters[lock as usize])[0].get(), expected, "lock {lock}");
    }
    dsm.leave().expect("all live");
    let messages = after.messages_sent - before.messages_sent;
    Result { time, messages, bytes: after.bytes_sent - before.bytes_sent }
}

/// Four nodes that repeatedly hold a lock for a while to read.
fn readers(mode: Mode, turns: u32) -> Duration {
    let times = on_nodes(4, Scheme::LogAtManager, |mut dsm| {
        let begun = Instant::now();
        for _ in 0..turns.max(1) {
            dsm.acquire(LockId(0), mode).expect("all live");
            thread::park_timeout(LOOK);
            dsm.release(LockId(0)).expect("it is held");
        }
        dsm.barrier(BarrierKind::Ordinary).expect("all live");
        let time = begun.elapsed();
        dsm.leave().expect("all live");
        time
    });
    times.into_iter().max().expect("there are nodes")
}
