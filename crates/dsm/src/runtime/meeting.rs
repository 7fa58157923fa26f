//! The meeting of a node's threads before a barrier. One of them then crosses the barrier for all.

use kyocho_sys::error::Errno;

use crate::interface::{DsmError, Outcome};
use crate::message::BarrierKind;
use crate::region::RegionPlan;

/// The result of a call.
pub(super) type CallResult = Result<Result<Outcome, DsmError>, Errno>;

/// A region that a thread wants, and its address in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RegionRequest {
    pub(super) plan: RegionPlan,
    pub(super) here: Option<usize>,
}

/// What one thread asks of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Barrier(BarrierKind),
    Region(RegionRequest),
}

/// What the threads of a node ask for together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JointRequest {
    Barrier(BarrierKind),
    Region(RegionRequest),
    /// Some threads ask for this region, others for something else.
    Different(RegionRequest),
}

/// The threads of a node that cross barriers together.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    members: u16,
    arrived: u16,
    /// Threads that asked for a single-read-write barrier.
    single: u16,
    /// A region that was asked for, and whether all threads asked for the same.
    region: Option<(RegionRequest, bool)>,
    /// One thread is crossing the barrier for all.
    crossing: bool,
    /// Number of barriers crossed, and the result of the last one.
    round: u64,
    came: Option<CallResult>,
}

impl Meeting {
    /// Sets the number of threads that meet.
    pub(super) fn expect(&mut self, members: u16) {
        assert_eq!(self.members, 0, "no threads are meeting");
        self.members = members;
    }

    /// Whether barriers wait for any threads.
    pub(super) fn is_expected(&self) -> bool {
        self.members > 0
    }

    /// One thread comes to no more barriers.
    pub(super) fn excuse(&mut self) {
        self.members -= 1;
    }

    /// One thread has arrived. Returns the number of the round that it waits for.
    pub(super) fn arrive(&mut self, wish: Request) -> u64 {
        self.arrived += 1;
        self.single += u16::from(wish == Request::Barrier(BarrierKind::SingleReadWrite));
        let is_first = self.arrived == 1;
        self.region = match (wish, self.region) {
            (Request::Region(wanted), None) => Some((wanted, is_first)),
            (wish, Some((wanted, alike))) => {
                Some((wanted, alike && wish == Request::Region(wanted)))
            }
            (Request::Barrier(_), None) => None,
        };
        self.round
    }

    /// If all threads have arrived, what the caller has to do for them. No other thread does it.
    pub(super) fn begin(&mut self) -> Option<JointRequest> {
        if self.crossing || self.arrived < self.members {
            return None;
        }
        self.crossing = true;
        let single = self.single == self.arrived;
        Some(match self.region {
            Some((wanted, true)) => JointRequest::Region(wanted),
            Some((wanted, false)) => JointRequest::Different(wanted),
            None if single => JointRequest::Barrier(BarrierKind::SingleReadWrite),
            None => JointRequest::Barrier(BarrierKind::Ordinary),
        })
    }

    /// The barrier is crossed.
    pub(super) fn end(&mut self, came: CallResult) {
        (self.arrived, self.single, self.region, self.crossing) = (0, 0, None, false);
        self.round += 1;
        self.came = Some(came);
    }

    /// The result of a round, if the round is over. The next round ends only after all threads have
    /// taken this result.
    pub(super) fn came_of(&self, round: u64) -> Option<CallResult> {
        self.came.filter(|_| self.round > round)
    }
}
