//! Kill points, and the other actions of a microprocess on its orders.
//!
//! There is a *kill point* at the beginning and at the end of each operation that may wait, and in
//! `yield_now`. If the microprocess is killed, it unwinds there with a private payload: destructors
//! run, guards release, and its handle reports [`Killed`](crate::Killed). A microprocess that is
//! unwinding already, or has left its body, is not affected: it ends anyway.
//!
//! **Invariant:** if a wait without a time limit ends as if by one, the microprocess was killed,
//! and may unwind.

use std::panic::resume_unwind;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::thread::panicking;

use crate::data::deadline::Deadline;
use crate::data::killed::Killed;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::{Record, State};
use crate::processor::vp::{Masked, Vp, attention};
use crate::schedule::{Section, mask, switch_away};

/// Suspends `record`, which the base has chosen, if that was ordered; returns whether it was.
pub(crate) fn is_suspended_here(record: &'static Record) -> bool {
    if !record.orders.is_suspended() {
        return false;
    }
    if record.is_stackless.get() && record.bound.get().is_some() {
        // It is in the middle of a step, and may hold what others wait for. The step ends first,
        // and soon if it polls.
        record.poll.store(1, Ordering::Relaxed);
        return false;
    }
    record.state.set(State::Suspended);
    true
}

/// Acts on the orders of `me`, which runs on `vp`. It may be suspended here, but does not unwind.
#[cold]
pub(crate) fn act_on_orders(vp: Masked<'_>, me: &'static Record) {
    vp.remind(me);
    if me.is_stackless.get() {
        // Acted on between two steps.
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

/// Unwinds without a message of the panic hook.
fn die() -> ! {
    resume_unwind(Box::new(Killed::new()))
}

/// A separate kill point, for operations that begin without a section: three loads. The attention
/// word that is read may belong to a virtual processor that the thread has lost meanwhile. [`obey`]
/// checks reliably, and a kill that is missed here takes effect at the next kill point.
#[inline(always)]
pub(crate) fn hot_point() {
    let ordered = |vp: &Vp| vp.attention.load(Ordering::Relaxed) & attention::ORDERS != 0;
    if KernelThread::current().held().is_some_and(ordered) {
        point();
    }
}

/// A separate kill point.
#[cold]
pub(crate) fn point() {
    let section = obey(mask());
    section.leave();
}

/// The kill point at the end of a wait that was not granted.
#[cold]
pub(crate) fn after_wait(deadline: Option<Deadline>) {
    point();
    assert!(deadline.is_some(), "only a kill ends a wait that has no time limit");
}
