//! A user's share of the processors.
//!
//! What an account's threads run counts on its *virtual time*: time on a processor by the account's share (start-time fair queueing;
//! Goyal, Guo and Vin, 1996). The *floor* is the virtual time of the hindmost active account, and nobody's is below it: who was away saves
//! nothing up. How far an account is before the floor is its *lead*, and its threads run the less urgently, the greater that is.
//!
//! ```text
//!  floor          + BURST          + 2 BURST    ...    + LEAD_MAX     virtual time
//!    | own priority  | a quarter       | one level less ...  |
//! ```
//!
//! So users whose threads want more than there is have the processors in proportion to their shares, however many threads each has and on
//! however many virtual processors they are; nobody is held up while a processor is free. One who wants less than his share does not keep
//! the others from theirs: the floor follows who is before all at `LEAD_MAX`.
//!
//! Pure: time is an argument.

use kyocho_microprocess::Priority;

/// How far before the floor an account may be as if it were not: threads take turns by the time slice, and who seldom runs is
/// not behind.
const BURST_NS: u64 = 20_000_000;
/// Beyond this no lead is the greater for it.
const LEVELS: u64 = 8;
/// No account is further before the floor.
const LEAD_MAX_NS: u64 = LEVELS * BURST_NS;
/// The threads of an account with a lead run at this part of their priority, or lower.
const BEHIND_PART: u8 = 4;

/// The virtual time of an account that was at `virtual_ns`, after its threads have run for `ran_ns`.
pub fn after(virtual_ns: u64, floor_ns: u64, ran_ns: u64, share: u32) -> u64 {
    virtual_ns.max(floor_ns).saturating_add(ran_ns / u64::from(share.max(1)))
}

/// The floor that follows `before_ns`, with accounts active that are at these virtual times.
pub fn floor(before_ns: u64, active_ns: impl Iterator<Item = u64>) -> u64 {
    let raised = active_ns.map(|at_ns| at_ns.max(before_ns));
    let ends = raised.fold(None, |ends, at_ns| {
        let (first, last) = ends.unwrap_or((at_ns, at_ns));
        Some((at_ns.min(first), at_ns.max(last)))
    });
    ends.map_or(before_ns, |(first, last)| first.max(last.saturating_sub(LEAD_MAX_NS)))
}

/// The priority that is left of a thread's own, for an account at `virtual_ns`.
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
