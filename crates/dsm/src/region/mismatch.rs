//! Nodes that do not create the same region at the same barrier.

use core::fmt;

use kyocho_sys::error::Errno;
use serde::{Deserialize, Serialize};

use super::RegionPlan;
use crate::address::NodeId;

/// Why a node cannot create a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegionFailure {
    /// Its host has refused, with this error number.
    Host(u32),
    /// Its threads do not ask for the same.
    Threads,
}

impl fmt::Display for RegionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(number) => match i32::try_from(*number) {
                Ok(number @ 1..) => Errno::new(number).fmt(f),
                _ => write!(f, "error {number}"),
            },
            Self::Threads => f.write_str("its threads ask for different things"),
        }
    }
}

/// What another node does instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RegionDifference {
    /// It creates none.
    Nothing,
    /// It creates this one.
    Other(RegionPlan),
    /// It cannot create one.
    Failed(RegionFailure),
}

/// The nodes did not create the same region at the same barrier: no node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionMismatch {
    /// The region that a node was to create.
    pub plan: RegionPlan,
    /// That node.
    pub by: NodeId,
    /// Another node, or the same.
    pub other: NodeId,
    /// What the other node does.
    pub difference: RegionDifference,
}

impl RegionMismatch {
    /// Whether it can have happened in a cluster of so many nodes.
    pub(crate) fn is_possible(&self, nodes: u16) -> bool {
        let difference = match self.difference {
            RegionDifference::Other(plan) => plan.is_possible(nodes),
            RegionDifference::Nothing | RegionDifference::Failed(_) => true,
        };
        self.by.0 < nodes && self.other.0 < nodes && self.plan.is_possible(nodes) && difference
    }
}

impl fmt::Display for RegionMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, by: NodeId(by), other: NodeId(other), difference } = self;
        let same = "all nodes must create the same regions in the same order";
        match difference {
            RegionDifference::Nothing => {
                write!(f, "node {by} creates {plan}, node {other} none: {same}")
            }
            RegionDifference::Other(another) => {
                write!(f, "node {by} creates {plan}, node {other} {another}: {same}")
            }
            RegionDifference::Failed(why) => write!(f, "node {other} cannot create {plan}: {why}"),
        }
    }
}

/// The first node, by rank, that differs from the first one that creates a region.
pub(crate) fn find(
    brought: &[(NodeId, RegionPlan, Option<RegionFailure>)],
    nodes: u16,
) -> Option<RegionMismatch> {
    let of = |node: NodeId| brought.iter().find(|(by, ..)| *by == node);
    let (by, plan, _) = *brought.iter().min_by_key(|(by, ..)| *by)?;
    let differs = |other: NodeId| {
        let difference = match of(other) {
            None => RegionDifference::Nothing,
            Some((_, another, _)) if *another != plan => RegionDifference::Other(*another),
            Some((_, _, Some(why))) => RegionDifference::Failed(*why),
            Some(_) => return None,
        };
        Some(RegionMismatch { plan, by, other, difference })
    };
    (0..nodes).map(NodeId).find_map(differs)
}
