//! Orders: what others want of a microprocess, whatever it is doing: that it ends, that it stands still, that it looks up.
//!
//! ```text
//!   anybody ── set a bit of the order word, post ORDERS ──► holder of its home (masked)
//!
//!   it is …                 kill                                        suspend
//!   running                 attention, then its next *kill point*       stands aside at once
//!   runnable, not started   by way of the base, then its next point     stands aside when its turn comes
//!   parked                  the wait ends as by a time limit; unwinds   marked; a wake is kept, then stands aside
//!   asleep in the kernel    its call is interrupted; when it is back    when it is back
//!   stackless               `Stackless::killed` instead of a step       stands aside between steps
//! ```
//!
//! A signal ends the call that it meets. One that comes a moment before the call, or meets the sleep for a page or a lock on the way to it, is
//! lost. So whoever takes a processor from a sleeper looks whether that one has orders to end its call ([`end_call`]), and from the first signal on the
//! monitor sends more, less and less often, until the sleeper calls us. To *want* a stackless one does that and no more: so its step, which looks at
//! the poll word, hears of what its program has to tell it.
//!
//! A *kill point* is where an operation that may wait begins, where one was waiting, and a `yield_now`. There the microprocess
//! unwinds with a private payload: destructors run, guards release, its handle reports [`Killed`](crate::Killed). One that unwinds
//! already, or is past its body, is left alone: it ends anyway.
//!
//! **Invariant:** while what runs on a virtual processor is killed and has not unwound, `attention` holds
//! [`ORDERS`](crate::vp::attention::ORDERS) there. So a kill point loads a word that it loads anyway.
//!
//! **Invariant:** a wait without a time limit that ends as if by one was ended by a kill, and may unwind.
//!
//! Source: Paper 1, part 5 (stopping and resuming a microprocess by its global identifier).

use std::panic::resume_unwind;

use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::thread::panicking;

use crate::deadline::Deadline;
use crate::kernel_thread::KernelThread;
use crate::preempt;
use crate::record::{Record, State};
use crate::schedule::{Section, mask, switch_away};
use crate::scheduler::Arrival;
use crate::trace::What;
use crate::vp::{Masked, Vp, attention};

mod word;

use word::Due;
pub(crate) use word::{KILL, Orders, SUSPEND, WANTED};

impl Masked<'_> {
    /// Somebody changed the orders of `record`, whose home this is. By the holder, masked.
    #[cold]
    pub(crate) fn take_orders(self, record: &'static Record) {
        self.trace.note(What::Changed, Some(record));
        if !record.is_stackless.get() {
            record.orders.forget_want();
        }
        record.refresh_special();
        match record.orders.due(record.state.get()) {
            Due::GoesOn => {
                record.state.set(State::Runnable);
                self.queue().push(record, Arrival::Woken);
            }
            Due::WaitEnds => self.interrupt(record),
            Due::CallEnds => end_call(record),
            Due::Nothing => {}
        }
    }

    /// Ends the wait of `record`, which is parked and killed, as a time limit would.
    fn interrupt(self, record: &'static Record) {
        if record.is_stackless.get() {
            return self.wake(record);
        }
        // A joiner that is no longer registered is about to be woken.
        let unwinds = record.bound.get().is_some() && record.is_unwinding.get();
        let ends_anyway = unwinds || record.is_ending.get();
        if ends_anyway || !record.stop_joining() {
            return;
        }
        if record.timer.is_set() {
            self.own().timers.remove(record);
        }
        record.timed_out.set(true);
        record.state.set(State::Runnable);
        self.queue().push(record, Arrival::Woken);
    }

    /// Reminds `record`, which is about to run here, of its orders.
    #[inline]
    pub(crate) fn remind(self, record: &'static Record) {
        if record.orders.is_killed() {
            self.attention.fetch_or(attention::ORDERS, Ordering::Relaxed);
        }
    }
}

/// Lets the call that `record`, which is Blocked, sleeps in return early. By the holder of its home, or who takes that processor.
#[cold]
pub(crate) fn end_call(record: &'static Record) {
    // Stackless ones that make the call in a loop look at this.
    record.poll.store(1, Ordering::Relaxed);
    if let Some(thread) = record.bound.get() {
        thread.call_back();
        preempt::interrupt_call(thread);
        record.home().shared().monitor.call_again();
    }
}

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
    resume_unwind(Box::new(crate::Killed::new()))
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
