//! Who gives way to whom: the pure part of cooperation between address spaces.

use core::cmp::Reverse;

use super::table::Claim;

/// How a virtual processor stands among those who want its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody else wants the CPU.
    Alone,
    /// Others want it, none of them more: the host divides it among equals.
    Among,
    /// Somebody wants it more.
    Outranked,
}

/// The standing of `own` among `others`.
pub(super) fn standing(own: Claim, others: impl Iterator<Item = Claim>) -> Standing {
    let mut standing = Standing::Alone;
    for other in others.filter(|other| other.cpu == own.cpu) {
        if other.level > own.level {
            return Standing::Outranked;
        }
        standing = Standing::Among;
    }
    standing
}

/// Where a virtual processor should move: to the first of the `allowed` CPUs that nobody wants, unless it has its own to itself, or
/// is the first among those who want that one: of several, all but one move.
pub(super) fn better_cpu(
    own: Claim,
    allowed: &[usize],
    others: impl Iterator<Item = Claim> + Clone,
) -> Option<usize> {
    let rank = |claim: Claim| (claim.level, Reverse(claim.index));
    others.clone().find(|&other| other.cpu == own.cpu && rank(other) > rank(own))?;
    allowed.iter().copied().find(|&cpu| others.clone().all(|other| other.cpu != cpu))
}

/// How long one that is outranked stands aside: until it no longer is, but not for longer than a bound at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// Since when it has stood aside.
    since_ns: Option<u64>,
    /// Until when it need not.
    grace_end_ns: u64,
}

/// How long who has stood aside for the bound may then run.
const GRACE_NS: u64 = crate::data::slice::SLICE_NS;

impl Patience {
    pub(super) const NEW: Self = Self { since_ns: None, grace_end_ns: 0 };

    /// Until when to stand aside, seen at `now_ns`; `None`: not at all.
    pub(super) fn aside_until(
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
