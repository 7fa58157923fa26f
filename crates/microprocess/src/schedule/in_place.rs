//! Suspends a microprocess together with its kernel thread, or stops it where it stands.
//!
//! Other microprocesses leave their stack, so that the base or the next microprocess continues on
//! the same kernel thread.

use core::ptr;

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::thread::panicking;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::record::Record;
use crate::processor::scheduler::Arrival;
use crate::processor::spin;
use crate::processor::vp::Masked;
use crate::protocol::pause::let_others_run;
use crate::schedule::wait_for_vp;

/// Passes the virtual processor to the thread to which `record` is bound.
pub(crate) fn pass_to_bound(
    thread: &'static KernelThread,
    vp: Masked<'_>,
    record: &'static Record,
    successor: &'static KernelThread,
) {
    record.bound.set(None);
    record.refresh_special();
    vp.remind(record);
    vp.begin(record);
    thread.pass(vp.vp(), successor);
}

/// Ends the virtual processor, since its runtime stops.
pub(crate) fn retire(vp: Masked<'_>) {
    vp.own().free.give_all_back();
    vp.current.set(None);
    spin::rest(vp.vp());
    vp.stopped.store(1, Ordering::Release);
    futex::wake(&vp.stopped, u32::MAX);
}

/// Called if the runtime stops inside a stackless step: this kernel thread sleeps for ever.
pub(crate) fn abandon(vp: Masked<'_>) -> ! {
    KernelThread::current().strand(true);
    retire(vp);
    loop {
        futex::wait(&vp.stopped, 1, None);
    }
}

/// Suspends `me` together with its kernel thread, which keeps the stack. The virtual processor goes
/// to another thread.
///
/// For code that must not change its kernel thread, or cannot leave its stack: a stackless step,
/// unwinding code (the count of panics belongs to the kernel thread), code that was interrupted at
/// an arbitrary instruction.
#[cold]
pub(crate) fn suspend_in_place(vp: Masked<'_>, me: &'static Record) {
    me.is_unwinding.set(panicking());
    while !try_suspend_in_place(vp, me) {
        vp.shared().maker.ask(&vp);
        let_others_run();
    }
}

/// As [`suspend_in_place`], unless there is no kernel thread to take the virtual processor; returns
/// whether it suspended.
pub(crate) fn try_suspend_in_place(vp: Masked<'_>, me: &'static Record) -> bool {
    let thread = KernelThread::current();
    let next = vp.queue().pop();
    if next.is_some_and(|next| ptr::eq(next, me)) && me.destination().is_none() {
        vp.begin(me);
        return true;
    }
    // Before the next one runs, since that may wake this one at once.
    me.bound.set(Some(thread));
    me.special.set(true);
    thread.strand(true);
    // A microprocess that must move elsewhere, or has orders, is left to the base.
    let at_once = next.filter(|next| !next.orders.is_any() && next.destination().is_none());
    if let Some((next, successor)) = at_once.and_then(|next| Some((next, next.bound.get()?))) {
        pass_to_bound(thread, vp, next, successor);
    } else if let Some(spare) = vp.take_spare() {
        vp.own().chosen.set(next);
        vp.current.set(None);
        thread.pass(vp.vp(), spare);
    } else {
        if let Some(next) = next {
            vp.queue().push(next, Arrival::Outranked);
        }
        me.bound.set(None);
        me.refresh_special();
        thread.strand(false);
        return false;
    }
    wait_for_vp(thread);
    thread.strand(false);
    true
}

/// Takes the virtual processor for good from `me`, which was killed in code that never calls the
/// runtime. Its kernel thread sleeps until the process ends, and its stack is never unwound.
/// Returns if there is no kernel thread to take the virtual processor.
pub(crate) fn abandon_in_place(vp: Masked<'_>, me: &'static Record) {
    let thread = KernelThread::current();
    let Some(spare) = vp.take_spare() else { return vp.shared().maker.ask(&vp) };
    me.bound.set(Some(thread));
    thread.strand(true);
    (vp.shared().dispatcher.conclude_abandoned)(vp, me);
    vp.current.set(None);
    thread.pass(vp.vp(), spare);
    wait_for_vp(thread);
    unreachable!("an abandoned microprocess received a virtual processor");
}

/// Stops the virtual processor from inside a signal handler: the interrupted microprocess never
/// runs again.
pub(crate) fn stop_in_place(vp: Masked<'_>, me: &'static Record) -> ! {
    let thread = KernelThread::current();
    me.bound.set(Some(thread));
    abandon(vp)
}
