//! A node's side of making a region: it has the pages before it says so, at a barrier, and gives them up again where the nodes do not agree.
//!
//! ```text
//!   here: pages and managers of the plan ── Region(plan) ── Arrive ──> node 0: all the same?
//!         they stay <────────────────────────────── Go ──────────────────┤ yes
//!         they are gone, the call fails <── Refuse ── Go ────────────────┘ no: everywhere
//! ```
//!
//! So nobody hears of a page that it does not have: who has crossed the barrier, and asks for one, asks nodes that have arrived.

use super::{BARRIER_MANAGER, Breach, End, Loss, Node};
use crate::interface::{DsmError, Outcome};
use crate::message::{BarrierKind, Message};
use crate::region::RegionPlan;
use crate::region::discord::Hindrance;
use crate::wire;

impl Node {
    /// Makes a region, unless something hinders this node, and comes to the barrier at which all say what they make.
    pub(super) fn found(&mut self, plan: RegionPlan, hindrance: Option<Hindrance>) {
        if hindrance.is_none() {
            self.layout.regions.add(&plan, self.layout.nodes);
            let pages = self.layout.regions.of(&plan);
            self.memory.add(pages, self.me);
            self.founding = Some(plan);
        }
        self.send(BARRIER_MANAGER, Message::Region(plan, hindrance));
        self.arrive(BarrierKind::Ordinary);
    }

    /// At the end of the barrier, a region that was made stays, or does not.
    pub(super) fn settle(&mut self) {
        let founded = self.founding.take();
        if self.refused.is_none() {
            return;
        }
        founded.into_iter().for_each(|plan| self.forget(plan));
        // Whoever is ahead knows better than to speak of those pages.
        let strange = |message: &Message| wire::check(0, message, &self.layout);
        let mut begun = self.begun.iter();
        let found = begun.find_map(|(from, message)| Some((*from, strange(message).err()?)));
        if let Some((peer, why)) = found {
            self.lose(Loss { peer, end: End::Broke(Breach::Nonsense(why)) });
        }
    }

    /// Gives the pages of a region up, which the program has never seen.
    pub(super) fn forget(&mut self, plan: RegionPlan) {
        self.layout.regions.remove(plan.first);
        self.memory.forget(&plan);
        self.followers.retain(|page, _| !plan.has(*page));
        self.moves.retain(|asked| !asked.page().is_some_and(|page| plan.has(page)));
        for pages in [&mut self.unnoted, &mut self.touched, &mut self.ahead, &mut self.in_sight] {
            pages.retain(|page| !plan.has(*page));
        }
    }

    /// What the call at the barrier comes to that is just crossed.
    pub(super) fn crossing(&mut self) -> Result<Outcome, DsmError> {
        self.refused.take().map_or(Ok(Outcome::Done), |why| Err(DsmError::Discord(why)))
    }
}
