//! Messages and bytes between each pair of eight nodes (paper 3, figure 3 and table 3).
//!
//! Nodes 0 and 1 share a lock and a counter, nodes 2 and 3 the next ones, and so on. A pair's first
//! node manages the lock. Each node increments its counter 100 times. The paper does not name
//! the number; this one is inferred, because both of its totals fit. If each of TreadMarks' acquires
//! takes 4 messages (a request, the lock, a request for differences, the differences), 800
//! increments make 3,200 of the 3,397. If an acquire of SMS by the node that does not manage the
//! lock takes 5 (a request, the lock, the release, and acknowledgements of the last two), 400 make
//! 2,000 of the 2,090.
//!
//! Everything is counted that the nodes send, from joining until all have crossed the last barrier.

use std::sync::Barrier;

use kyocho_dsm::transport::Traffic;
use kyocho_dsm::{BarrierKind, Dsm, LockId, Mode, NodeId, Placement, Scheme};

use crate::cluster::on_nodes;

/// pc9 to pc16.
const NODES: u16 = 8;
const PAIRS: u16 = NODES / 2;
/// Increments of each node.
const TURNS: u32 = 100;

/// What one node sent to each node.
type Row = Vec<Traffic>;

/// Prints both matrices of table 3: one page manager, and page managers where pages are used.
pub fn run() {
    print("one", &matrix(|_| NodeId(0)));
    print("spread", &matrix(first_of));
}

/// The first node of a pair.
fn first_of(pair: u16) -> NodeId {
    NodeId(2 * pair)
}

/// One line of JSON. Row and column are the sender and the receiver.
fn print(page_managers: &str, rows: &[Row]) {
    let of = |field: fn(&Traffic) -> u64| -> Vec<Vec<u64>> {
        rows.iter().map(|row| row.iter().map(field).collect()).collect()
    };
    println!(
        "{{\"matrix\": \"{page_managers}\", \"turns\": {TURNS}, \"messages\": {:?}, \"bytes\": {:?}}}",
        of(|traffic| traffic.messages_sent),
        of(|traffic| traffic.bytes_sent),
    );
}

fn matrix(page_manager_of: fn(u16) -> NodeId) -> Vec<Row> {
    let all = Barrier::new(NODES.into());
    on_nodes(NODES, Scheme::LogAtManager, |dsm| node(dsm, page_manager_of, &all))
}

/// The program of one node. `all` are its threads, which need no messages to wait for each other.
fn node(mut dsm: Dsm, page_manager_of: fn(u16) -> NodeId, all: &Barrier) -> Row {
    let counters: Vec<_> = (0..PAIRS)
        .map(|pair| {
            let placement = Placement::On(page_manager_of(pair));
            dsm.allocate::<u64>(1, placement).expect("room")
        })
        .collect();
    for pair in 0..PAIRS {
        dsm.move_lock(LockId(pair.into()), first_of(pair)).expect("in range");
    }
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    let pair = dsm.rank() / 2;
    let (lock, counter) = (LockId(pair.into()), &counters[usize::from(pair)]);
    for _ in 0..TURNS {
        dsm.acquire(lock, Mode::Exclusive).expect("all live");
        let cell = &dsm.cells(counter)[0];
        cell.set(cell.get() + 1);
        dsm.release(lock).expect("it is held");
    }
    dsm.barrier(BarrierKind::Ordinary).expect("all live");
    all.wait();
    let row = (0..NODES).map(|peer| dsm.traffic_with(NodeId(peer))).collect();
    all.wait();
    assert_eq!(dsm.cells(counter)[0].get(), u64::from(2 * TURNS), "pair {pair}");
    dsm.leave().expect("all live");
    row
}
