//! Where the threads of one node meet before it is at a barrier: the last one stands for all.

use kyocho_sys::error::Errno;

use crate::interface::{DsmError, Outcome};
use crate::message::BarrierKind;
use crate::region::RegionPlan;

/// What came of a call.
pub(super) type Came = Result<Result<Outcome, DsmError>, Errno>;

/// A region that a thread wants, and where in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) plan: RegionPlan,
    pub(super) here: Option<usize>,
}

/// What a thread wants of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Barrier(BarrierKind),
    Region(Wanted),
}

/// What the threads of a node want together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreed {
    Barrier(BarrierKind),
    Region(Wanted),
    /// Some want this region, others something else.
    Different(Wanted),
}

/// The threads of a node that cross its barriers together.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    members: u16,
    arrived: u16,
    /// Those who asked for a single-read-write barrier.
    single: u16,
    /// A region that was asked for, and whether by all alike.
    region: Option<(Wanted, bool)>,
    /// One crosses for all.
    crossing: bool,
    /// Barriers crossed, and what came of the last one.
    round: u64,
    came: Option<Came>,
}

impl Meeting {
    /// From now on so many threads meet.
    pub(super) fn expect(&mut self, members: u16) {
        assert_eq!(self.members, 0, "those who met before have gone");
        self.members = members;
    }

    /// Whether any are still to come.
    pub(super) fn is_expected(&self) -> bool {
        self.members > 0
    }

    /// One of them comes to no more barriers.
    pub(super) fn excuse(&mut self) {
        self.members -= 1;
    }

    /// One is there; the round that it waits for.
    pub(super) fn arrive(&mut self, wish: Wish) -> u64 {
        self.arrived += 1;
        self.single += u16::from(wish == Wish::Barrier(BarrierKind::SingleReadWrite));
        let is_first = self.arrived == 1;
        self.region = match (wish, self.region) {
            (Wish::Region(wanted), None) => Some((wanted, is_first)),
            (wish, Some((wanted, alike))) => Some((wanted, alike && wish == Wish::Region(wanted))),
            (Wish::Barrier(_), None) => None,
        };
        self.round
    }

    /// Whether all are there: what to cross, which the caller does, and nobody else.
    pub(super) fn begin(&mut self) -> Option<Agreed> {
        if self.crossing || self.arrived < self.members {
            return None;
        }
        self.crossing = true;
        let single = self.single == self.arrived;
        Some(match self.region {
            Some((wanted, true)) => Agreed::Region(wanted),
            Some((wanted, false)) => Agreed::Different(wanted),
            None if single => Agreed::Barrier(BarrierKind::SingleReadWrite),
            None => Agreed::Barrier(BarrierKind::Ordinary),
        })
    }

    /// The barrier is crossed.
    pub(super) fn end(&mut self, came: Came) {
        (self.arrived, self.single, self.region, self.crossing) = (0, 0, None, false);
        self.round += 1;
        self.came = Some(came);
    }

    /// What came of a round, if it is over. Nobody meets again before all have been told.
    pub(super) fn came_of(&self, round: u64) -> Option<Came> {
        self.came.filter(|_| self.round > round)
    }
}
