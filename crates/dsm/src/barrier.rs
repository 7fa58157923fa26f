//! The manager of barriers: collects the arrivals of all nodes, and releases the nodes when the
//! last one has arrived.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::{LockId, NodeId, PageId};
use crate::message::{BarrierKind, Message, Move};
use crate::region::RegionPlan;
use crate::region::mismatch::{self, RegionFailure};

/// What the nodes have sent to the barrier of one epoch.
#[derive(Debug, Default)]
pub(crate) struct EpochArrivals {
    arrived: BTreeSet<NodeId>,
    time: u64,
    written: BTreeMap<PageId, Vec<NodeId>>,
    held: Vec<(LockId, NodeId)>,
    moves: Vec<(NodeId, Move)>,
    single_read_write: usize,
    /// The region that each node creates at this barrier, and what prevents the node from creating
    /// it.
    regions: Vec<(NodeId, RegionPlan, Option<RegionFailure>)>,
}

impl EpochArrivals {
    /// Records the region that a node creates at this barrier.
    pub(crate) fn make(&mut self, from: NodeId, plan: RegionPlan, failure: Option<RegionFailure>) {
        self.regions.push((from, plan, failure));
    }

    /// Whether a node creates a region at this barrier.
    pub(crate) fn makes(&self, node: NodeId) -> bool {
        self.regions.iter().any(|(by, ..)| *by == node)
    }

    /// Records the arrival of one node. Returns the messages for all nodes if it was the last of
    /// `nodes`.
    pub(crate) fn arrive(
        &mut self,
        from: NodeId,
        arrival: Arrival,
        nodes: u16,
    ) -> Option<Vec<Message>> {
        self.arrived.insert(from);
        self.time = self.time.max(arrival.time);
        for page in arrival.written {
            self.written.entry(page).or_default().push(from);
        }
        self.held.extend(arrival.held.into_iter().map(|lock| (lock, from)));
        self.moves.extend(arrival.moves.into_iter().map(|asked| (from, asked)));
        self.single_read_write += usize::from(arrival.kind == BarrierKind::SingleReadWrite);
        if self.arrived.len() < usize::from(nodes) {
            return None;
        }
        let refuse = mismatch::find(&self.regions, nodes).map(Message::Refuse);
        let go = core::mem::take(self).go(nodes.into());
        Some(refuse.into_iter().chain([go]).collect())
    }

    /// Whether a node has arrived.
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.arrived.contains(&node)
    }

    fn go(mut self, nodes: usize) -> Message {
        // If several nodes move the same object, the node of the highest rank wins, whatever the
        // order of arrival.
        self.moves.sort_by_key(|(from, _)| *from);
        let mut locks = BTreeMap::new();
        let mut pages = BTreeMap::new();
        let kind = if self.single_read_write == nodes {
            BarrierKind::SingleReadWrite
        } else {
            BarrierKind::Ordinary
        };
        if kind == BarrierKind::SingleReadWrite {
            let single = self.written.iter().filter(|(_, writers)| writers.len() == 1);
            pages.extend(single.map(|(&page, writers)| (page, writers[0])));
        }
        for (_, asked) in self.moves {
            match asked {
                Move::Lock(lock, to) => locks.insert(lock, to).map(|_| ()),
                Move::Page(page, to) => pages.insert(page, to).map(|_| ()),
            };
        }
        let locks = locks.into_iter().map(|(lock, to)| Move::Lock(lock, to));
        let pages = pages.into_iter().map(|(page, to)| Move::Page(page, to));
        Message::Go {
            time: self.time,
            written: self.written.into_iter().collect(),
            held: self.held,
            moves: locks.chain(pages).collect(),
            kind,
        }
    }
}

/// What one node sends on arrival.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) time: u64,
    pub(crate) written: Vec<PageId>,
    pub(crate) held: Vec<LockId>,
    pub(crate) moves: Vec<Move>,
    pub(crate) kind: BarrierKind,
}
