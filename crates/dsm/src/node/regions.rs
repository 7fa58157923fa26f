//! A node's side of creating a region. It adds the pages before it arrives at the barrier, and
//! removes them if the nodes do not agree.
//!
//! ```text
//!   add pages and managers of the plan ── Region(plan) ── Arrive ──> node 0: all the same?
//!         they stay <────────────────────────────── Go ──────────────────┤ yes
//!         removed, the call fails <──────── Refuse ── Go ────────────────┘ no: on all nodes
//! ```
//!
//! So no node gets a message about a page that it does not have: a node that has crossed the
//! barrier asks nodes that have arrived.

use super::{BARRIER_MANAGER, End, Loss, Node, ProtocolViolation};
use crate::interface::{DsmError, Outcome};
use crate::message::{BarrierKind, Message};
use crate::region::RegionPlan;
use crate::region::mismatch::RegionFailure;
use crate::wire;

impl Node {
    /// Creates a region, unless something prevents it, and arrives at the barrier.
    pub(super) fn found(&mut self, plan: RegionPlan, failure: Option<RegionFailure>) {
        if failure.is_none() {
            self.layout.regions.add(&plan, self.layout.nodes);
            let pages = self.layout.regions.of(&plan);
            self.memory.add(pages, self.me);
            self.founding = Some(plan);
        }
        self.send(BARRIER_MANAGER, Message::Region(plan, failure));
        self.arrive(BarrierKind::Ordinary);
    }

    /// At the end of the barrier: keeps the region, or removes it.
    pub(super) fn settle(&mut self) {
        let founded = self.founding.take();
        if self.refused.is_none() {
            return;
        }
        founded.into_iter().for_each(|plan| self.forget(plan));
        // A peer that has crossed the barrier knows that these pages do not exist.
        let strange = |message: &Message| wire::check(0, message, &self.layout);
        let mut begun = self.begun.iter();
        let found = begun.find_map(|(from, message)| Some((*from, strange(message).err()?)));
        if let Some((peer, why)) = found {
            self.lose(Loss { peer, end: End::Broke(ProtocolViolation::InvalidMessage(why)) });
        }
    }

    /// Removes the pages of a region, which the program has never seen.
    pub(super) fn forget(&mut self, plan: RegionPlan) {
        self.layout.regions.remove(plan.first);
        self.memory.forget(&plan);
        self.followers.retain(|page, _| !plan.has(*page));
        self.moves.retain(|asked| !asked.page().is_some_and(|page| plan.has(page)));
        for pages in [&mut self.unnoted, &mut self.touched, &mut self.ahead, &mut self.in_sight] {
            pages.retain(|page| !plan.has(*page));
        }
    }

    /// The result of the call that crosses the barrier.
    pub(super) fn crossing(&mut self) -> Result<Outcome, DsmError> {
        self.refused.take().map_or(Ok(Outcome::Done), |why| Err(DsmError::RegionMismatch(why)))
    }
}
