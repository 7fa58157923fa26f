//! Kill points, and what else a microprocess does at the word of its orders.
//!
//! A *kill point* is where an operation that may wait begins, where one was waiting, and a `yield_now`. There the microprocess
//! unwinds with a private payload: destructors run, guards release, its handle reports [`Killed`](crate::Killed). One that unwinds
//! already, or is past its body, is left alone: it ends anyway.
//!
//! **Invariant:** a wait without a time limit that ends as if by one was ended by a kill, and may unwind.

use std::panic::resume_unwind;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::thread::panicking;

use crate::data::deadline::Deadline;
use crate::data::killed::Killed;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::{Record, State};
use crate::processor::vp::{Masked, Vp, attention};
use crate::schedule::{Section, mask, switch_away};

/// Whether `record`, which the base of `vp` has chosen, is to stand aside; then it does.
pub(crate) fn stands_aside(record: &'static Record) -> bool {
    if !record.orders.is_suspended() {
        return false;
    }
    if record.is_stackless.get() && record.bound.get().is_some() {
        // In the middle of a step, in which it may hold what others wait for: it ends that first, soon if it polls.
        record.poll.store(1, Ordering::Relaxed);
        return false;
    }
    record.state.set(State::Suspended);
    true
}

/// Does what is ordered of `me`, which runs on `vp` and may be suspended here, but not unwind.
#[cold]
pub(crate) fn heed(vp: Masked<'_>, me: &'static Record) {
    vp.remind(me);
    if me.is_stackless.get() {
        // Between two steps.
        me.poll.store(1, Ordering::Relaxed);
    } else if me.orders.is_suspended() {
        me.state.set(State::Suspended);
        switch_away(vp, me);
    }
}

/// A kill point in a section just entered: unwinds if the caller is killed and can unwind here.
#[cold]
#[inline(never)]
pub(crate) fn obey(section: Section) -> Section {
    let me = section.vp.current.get();
    let dies = section.is_outermost()
        && me.is_some_and(|me| {
            me.orders.is_killed() && !me.is_stackless.get() && !me.is_ending.get()
        })
        && !panicking();
    if dies {
        KernelThread::current().unmask();
        die();
    }
    section
}

/// Unwinds, without a word from the panic hook.
fn die() -> ! {
    resume_unwind(Box::new(Killed::new()))
}

/// A kill point of its own, for what begins without a section: two loads and a branch. What it loads may be another virtual processor's by the time
/// it looks; [`obey`] looks properly, and a kill that is missed meets the next point.
#[inline(always)]
pub(crate) fn hot_point() {
    let ordered = |vp: &Vp| vp.attention.load(Ordering::Relaxed) & attention::ORDERS != 0;
    if KernelThread::current().held().is_some_and(ordered) {
        point();
    }
}

/// A kill point of its own.
#[cold]
pub(crate) fn point() {
    let section = obey(mask());
    section.leave();
}

/// The kill point behind a wait that ended without its grant.
#[cold]
pub(crate) fn after_wait(deadline: Option<Deadline>) {
    point();
    assert!(deadline.is_some(), "only a kill ends a wait that has no time limit");
}
