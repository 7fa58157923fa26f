//! The manager of barriers: collects who is there, and says when all are.

use std::collections::{BTreeMap, BTreeSet};

use crate::address::{LockId, NodeId, PageId};
use crate::message::{BarrierKind, Message, Move};
use crate::region::RegionPlan;
use crate::region::discord::{self, Hindrance};

/// What nodes brought to the barrier of one epoch.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    arrived: BTreeSet<NodeId>,
    time: u64,
    written: BTreeMap<PageId, Vec<NodeId>>,
    held: Vec<(LockId, NodeId)>,
    moves: Vec<(NodeId, Move)>,
    single_read_write: usize,
    /// Who makes which region, and what hinders it.
    regions: Vec<(NodeId, RegionPlan, Option<Hindrance>)>,
}

impl Gathering {
    /// Takes in what region a node makes at this barrier.
    pub(crate) fn make(&mut self, from: NodeId, plan: RegionPlan, hindrance: Option<Hindrance>) {
        self.regions.push((from, plan, hindrance));
    }

    /// Whether a node makes one.
    pub(crate) fn makes(&self, node: NodeId) -> bool {
        self.regions.iter().any(|(by, ..)| *by == node)
    }

    /// Takes one node's arrival in; the messages for all when it was the last of `nodes`.
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
        let refuse = discord::find(&self.regions, nodes).map(Message::Refuse);
        let go = core::mem::take(self).go(nodes.into());
        Some(refuse.into_iter().chain([go]).collect())
    }

    /// Whether a node is there already.
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.arrived.contains(&node)
    }

    fn go(mut self, nodes: usize) -> Message {
        // Where several ask, the node of the highest rank has its way, in whatever order they came.
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

/// What one node brings.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) time: u64,
    pub(crate) written: Vec<PageId>,
    pub(crate) held: Vec<LockId>,
    pub(crate) moves: Vec<Move>,
    pub(crate) kind: BarrierKind,
}
