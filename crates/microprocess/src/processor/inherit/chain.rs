//! Passes a level from a waiter to the microprocess that it waits for, and on along the chain.

#![expect(unsafe_code, reason = "follows pointers to waiters' frames")]

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::hint::spin_loop;

use super::join::remind_joiner;
use crate::processor::record::{Record, State, remote};
use crate::processor::vp::{Masked, attention};
use crate::protocol::pause::let_others_run;

/// The longest chain of waits along which a change is passed.
const CHAIN_MAX: usize = 64;
/// Attempts before other threads are allowed to run.
const LOOKS: u32 = 200;

/// An object that passes priorities on to its owner.
pub(crate) trait Source {
    /// `record`, which waits for this, has another effective level, and its inheritance lock is
    /// held. Passes the level on without waiting for a lock. Releases the inheritance lock in any
    /// case.
    fn try_pass_on(&self, record: &'static Record, vp: Masked<'_>) -> PassedOn;
}

/// The outcome of an attempt to pass a level on.
pub(crate) enum PassedOn {
    /// A lock was held: try again.
    Busy,
    /// Done. Holds the record whose level changed because of it, if one did.
    To(Option<&'static Record>),
}

/// A wait for `source`. Lies in the waiter's own frame.
pub(crate) struct Wait<'a> {
    pub(crate) source: &'a dyn Source,
}

/// An object that serves its waiters by level, without passing levels on.
///
/// A wait costs two more stores for this. No lock is needed: only the holder of the waiter's home
/// calls [`rank_anew`](Self::rank_anew), and only that holder could make the waiter run meanwhile.
pub(crate) trait Ranking {
    /// `record`, which waits for this, has another effective level. Returns a record whose level
    /// changed because of that. Call as the holder of `vp`, the home of `record`, with events
    /// masked, in no guard.
    fn rank_anew(&self, record: &'static Record, vp: Masked<'_>) -> Option<&'static Record>;
}

/// A wait for an object that ranks its waiters. Lies in the waiter's own frame.
pub(crate) struct Ranked<'a> {
    pub(crate) by: &'a dyn Ranking,
}

/// Informs the home of `record` that its effective level has changed. Call as the holder of `vp`,
/// with events masked.
pub(crate) fn announce(record: &'static Record, vp: Masked<'_>) {
    if vp.is_home_of(record) {
        vp.changed(record);
        vp.attention.fetch_or(attention::RECONSIDER, Ordering::Relaxed);
    } else {
        record.post(remote::CHANGED);
    }
}

/// Makes `record` run at its effective level from now on. Call as the holder of its home; the
/// record is in no run queue.
pub(crate) fn take_over(record: &'static Record) {
    let before = record.level();
    record.take_asked_level();
    if record.level() < before {
        remind_joiner(record);
    }
}

/// Passes the new level of `record` along the chain of waits that begins with it. Call as the
/// holder of `vp`, with events masked, in no guard.
#[cold]
pub(crate) fn propagate(vp: Masked<'_>, record: &'static Record) {
    let mut at = record;
    for _ in 0..CHAIN_MAX {
        match pass_on(vp, at) {
            Some(next) => at = next,
            None => return,
        }
    }
}

fn pass_on(vp: Masked<'_>, record: &'static Record) -> Option<&'static Record> {
    let mut looks = 0_u32;
    loop {
        let inheritance = &record.inheritance;
        inheritance.lock.acquire();
        // SAFETY: null, or alive while the lock is held (invariant of `inherit`).
        let Some(wait) = (unsafe { inheritance.waits.get().as_ref() }) else {
            inheritance.lock.release();
            return rank_anew(vp, record);
        };
        match wait.source.try_pass_on(record, vp) {
            PassedOn::To(next) => return next,
            PassedOn::Busy => {
                looks += 1;
                if looks.is_multiple_of(LOOKS) {
                    let_others_run();
                }
                spin_loop();
            }
        }
    }
}

/// Informs the object for which `record` waits of its level, if that object ranks its waiters.
fn rank_anew(vp: Masked<'_>, record: &'static Record) -> Option<&'static Record> {
    // Otherwise the home of `record` does it, which is informed as well.
    if !vp.is_home_of(record) || record.state.get() != State::Parked {
        return None;
    }
    // SAFETY: null, or in the frame of a microprocess parked here. It cannot leave that frame
    // before the caller lets others run.
    let ranked = unsafe { record.inheritance.ranked.get().as_ref() }?;
    ranked.by.rank_anew(record, vp)
}
