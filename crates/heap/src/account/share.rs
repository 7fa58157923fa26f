//! A user's share of the processors.
//!
//! The running time of an account's threads, divided by the account's share, is its *virtual time*
//! (start-time fair queueing; Goyal, Guo and Vin, 1996). The *floor* is the least virtual time of
//! the active accounts. A virtual time below the floor is raised to it, so an idle account saves
//! nothing up. The *lead* of an account is its virtual time minus the floor. The greater the lead,
//! the less urgently its threads run.
//!
//! ```text
//!  floor          + BURST          + 2 BURST    ...    + LEAD_MAX     virtual time
//!    | own priority  | a quarter       | one level less ...  |
//! ```
//!
//! So when demand exceeds supply, users get the processors in proportion to their shares. The
//! number of their threads and of the virtual processors they run on makes no difference. No thread
//! waits while a processor is free. An account that uses less than its share does not hold the
//! others back: the floor is at most `LEAD_MAX` below the greatest virtual time.
//!
//! Pure: time is an argument.

use kyocho_microprocess::Priority;

/// A lead below this has no effect. Threads take turns by time slices, so a small lead does not
/// mean that other accounts lack processor time.
const BURST_NS: u64 = 20_000_000;
/// Number of priority steps that a lead can cause.
const LEVELS: u64 = 8;
/// The greatest lead.
const LEAD_MAX_NS: u64 = LEVELS * BURST_NS;
/// Threads of an account with a lead of [`BURST_NS`] or more run at their priority divided by this,
/// or lower.
const BEHIND_PART: u8 = 4;

/// The virtual time of an account after its threads have run for `ran_ns`, starting from
/// `virtual_ns`.
pub fn after(virtual_ns: u64, floor_ns: u64, ran_ns: u64, share: u32) -> u64 {
    virtual_ns.max(floor_ns).saturating_add(ran_ns / u64::from(share.max(1)))
}

/// The new floor, from the floor `before_ns` and the virtual times of the active accounts.
pub fn floor(before_ns: u64, active_ns: impl Iterator<Item = u64>) -> u64 {
    let raised = active_ns.map(|at_ns| at_ns.max(before_ns));
    let ends = raised.fold(None, |ends, at_ns| {
        let (first, last) = ends.unwrap_or((at_ns, at_ns));
        Some((at_ns.min(first), at_ns.max(last)))
    });
    ends.map_or(before_ns, |(first, last)| first.max(last.saturating_sub(LEAD_MAX_NS)))
}

/// The priority of a thread with priority `own`, for an account at `virtual_ns`.
pub fn priority(own: Priority, virtual_ns: u64, floor_ns: u64) -> Priority {
    let steps = (virtual_ns.saturating_sub(floor_ns) / BURST_NS).min(LEVELS);
    let level = match steps {
        0 => return own,
        steps => (own.level() / BEHIND_PART).saturating_sub(steps as u8 - 1),
    };
    Priority::new(level).unwrap_or(Priority::LOWEST)
}

#[cfg(test)]
mod tests;
