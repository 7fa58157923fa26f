//! Waiting for the first of several arms: a duplicate of `Select::wait_until` in
//! `src/wait/select.rs`, without kill points and ranks. It also lacks the rotating start, which
//! would make executions differ. The arms and the episode are real.

#[path = "../../src/wait/select/operation.rs"]
mod operation;

pub(crate) use operation::Operation;

use crate::guarded::Deadline;
use crate::record::{Kind, Reason};
use crate::sync::wait::Episode;

/// The arm whose operation is done; `None` if the deadline passed first.
pub(crate) fn wait_until(arms: &[&dyn Operation], deadline: Option<Deadline>) -> Option<usize> {
    loop {
        if let Some(index) = arms.iter().position(|arm| arm.attempt()) {
            return Some(index);
        }
        let episode = Episode::new();
        let all_wait = (0..).zip(arms).all(|(index, arm)| {
            // SAFETY: the arms are borrowed, and the episode lives until all arms are withdrawn.
            unsafe { arm.enlist(&episode, index) }
        });
        let reason = Reason { kind: Kind::Select, object: 0 };
        let claimed = if all_wait { episode.park(deadline, reason) } else { episode.close() };
        arms.iter().for_each(|arm| arm.withdraw());
        if let Some(index) = claimed {
            return Some(index as usize);
        }
        if all_wait {
            return None;
        }
    }
}
