//! Which virtual processor yields its CPU to which: the pure part of cooperation between address
//! spaces.

use core::cmp::Reverse;

use super::table::Claim;

/// The rank of a virtual processor among those that want its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// No other one wants the CPU.
    Alone,
    /// Others want it, but none is more urgent: the host divides it among them.
    Among,
    /// A more urgent one wants it.
    Outranked,
}

/// The rank of `own` among `others`.
pub(super) fn rank_of(own: Claim, others: impl Iterator<Item = Claim>) -> Rank {
    let mut rank = Rank::Alone;
    for other in others.filter(|other| other.cpu == own.cpu) {
        if other.level > own.level {
            return Rank::Outranked;
        }
        rank = Rank::Among;
    }
    rank
}

/// The CPU to which a virtual processor should move, if any: the first `allowed` one that none
/// wants. It stays if no other one wants its present CPU. Of several that want one CPU, the most
/// urgent stays (the first of them if they are equal), and the others move.
pub(super) fn better_cpu(
    own: Claim,
    allowed: &[usize],
    others: impl Iterator<Item = Claim> + Clone,
) -> Option<usize> {
    let rank = |claim: Claim| (claim.level, Reverse(claim.index));
    others.clone().find(|&other| other.cpu == own.cpu && rank(other) > rank(own))?;
    allowed.iter().copied().find(|&cpu| others.clone().all(|other| other.cpu != cpu))
}

/// How long an outranked virtual processor yields its CPU: as long as it is outranked, but not
/// longer than a bound at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// Since when it has yielded its CPU.
    since_ns: Option<u64>,
    /// Until when it may run although it is outranked.
    grace_end_ns: u64,
}

/// How long a virtual processor may run after it has yielded for the bound.
const GRACE_NS: u64 = crate::data::slice::SLICE_NS;

impl Patience {
    pub(super) const NEW: Self = Self { since_ns: None, grace_end_ns: 0 };

    /// Until when to yield, evaluated at `now_ns`; `None`: not at all.
    pub(super) fn yield_until(
        &mut self,
        outranked: bool,
        now_ns: u64,
        bound_ns: u64,
    ) -> Option<u64> {
        if !outranked || now_ns < self.grace_end_ns {
            self.since_ns = None;
            return None;
        }
        let end_ns = self.since_ns.get_or_insert(now_ns).saturating_add(bound_ns);
        if now_ns < end_ns {
            return Some(end_ns);
        }
        *self = Self { since_ns: None, grace_end_ns: now_ns + GRACE_NS };
        None
    }
}

#[cfg(test)]
mod tests;
