//! Carrying a level from who waits to who is waited for, and on along the chain.

#![expect(unsafe_code, reason = "follows pointers to waiters' frames")]

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::hint::spin_loop;

use super::join::remind_joiner;
use crate::processor::record::{Record, State, remote};
use crate::processor::vp::{Masked, attention};
use crate::protocol::pause::let_others_run;

/// The longest chain of waits that a change runs along.
const CHAIN_MAX: usize = 64;
/// Attempts before the kernel is asked to run somebody else.
const LOOKS: u32 = 200;

/// Something that can be waited for and passes priorities on.
pub(crate) trait Source {
    /// `who`, whose inheritance lock is held and who waits for this, has another effective level. Never waits for a lock. Either way the
    /// lock is released.
    fn try_pass_on(&self, who: &'static Record, vp: Masked<'_>) -> PassedOn;
}

/// What came of an attempt to pass a level on.
pub(crate) enum PassedOn {
    /// A lock was held: try again.
    Busy,
    /// Done; who has another level because of it.
    To(Option<&'static Record>),
}

/// A wait for `source`, in the waiter's own frame.
pub(crate) struct Wait<'a> {
    pub(crate) source: &'a dyn Source,
}

/// Something that is waited for and goes by the level of who waits.
///
/// Costs a wait one store, for it is asked by the holder of the waiter's home alone, which nobody but that one can make run meanwhile.
pub(crate) trait Ranking {
    /// `who`, which waits for this, has another effective level; returns who has another one because of that. By the holder of `vp`, its home,
    /// masked, in no guard.
    fn rank_anew(&self, who: &'static Record, vp: Masked<'_>) -> Option<&'static Record>;
}

/// A wait for something that ranks, in the waiter's own frame.
pub(crate) struct Ranked<'a> {
    pub(crate) by: &'a dyn Ranking,
}

/// Lets the home of `record`, whose effective level has changed, take it over. By the holder of `vp`, masked.
pub(crate) fn announce(record: &'static Record, vp: Masked<'_>) {
    if vp.is_home_of(record) {
        vp.changed(record);
        vp.attention.fetch_or(attention::RECONSIDER, Ordering::Relaxed);
    } else {
        record.post(remote::CHANGED);
    }
}

/// `record` is as urgent as it asked to be, or inherits, from now on. By the holder of its home; it is in no run queue.
pub(crate) fn take_over(record: &'static Record) {
    let before = record.level();
    record.take_asked_level();
    if record.level() < before {
        remind_joiner(record);
    }
}

/// Carries the new level of `record` along the chain of waits that begins with it. By the holder of `vp`, masked, in no guard.
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

fn pass_on(vp: Masked<'_>, who: &'static Record) -> Option<&'static Record> {
    let mut looks = 0_u32;
    loop {
        let inheritance = &who.inheritance;
        inheritance.lock.acquire();
        // SAFETY: null, or alive while the lock is held (text of `inherit`).
        let Some(wait) = (unsafe { inheritance.waits.get().as_ref() }) else {
            inheritance.lock.release();
            return rank_anew(vp, who);
        };
        match wait.source.try_pass_on(who, vp) {
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

/// Lets what `who` waits for know its level, if that ranks.
fn rank_anew(vp: Masked<'_>, who: &'static Record) -> Option<&'static Record> {
    // Elsewhere its home does it, which is told as well.
    if !vp.is_home_of(who) || who.state.get() != State::Parked {
        return None;
    }
    // SAFETY: null, or in the frame of who is parked here, and so does not leave it before the caller lets others run.
    let ranked = unsafe { who.inheritance.ranked.get().as_ref() }?;
    ranked.by.rank_anew(who, vp)
}
