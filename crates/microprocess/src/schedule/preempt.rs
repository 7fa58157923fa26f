//! Preempted: taking the processor from code that does not call the runtime.
//!
//! The monitor signals the kernel thread that holds the virtual processor. Its handler finds one of three things:
//!
//! * *Events are masked.* Nothing to do: whoever unmasks them looks at `attention`.
//! * *The thread holds no virtual processor.* The signal comes too late.
//! * *Else* a microprocess was interrupted anywhere, perhaps inside the allocator or the C library. It must not go on
//!   on another kernel thread, whose thread-local state those have not seen, nor may another microprocess run on this one
//!   meanwhile. So kernel thread and microprocess wait together, here in the handler, and the processor goes to
//!   another kernel thread.
//!
//! An interrupted restartable sequence is moved back to its start first (Paper 0).
#![expect(unsafe_code, reason = "a signal handler")]

use core::ffi::c_void;
use std::sync::Once;

use kyocho_arch::{pc_of, restartable, set_pc, sp_of};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::signal::{self, Info, Manner, preserving_errno};

use crate::processor::c_library;
use crate::processor::condemned::{self, Interrupted};
use crate::processor::event::{EventKind, Registers};
use crate::processor::hidden;
use crate::processor::kernel_thread::{KernelThread, PREEMPTING, interrupting_signal};
use crate::processor::record::{Record, State, remote};
use crate::processor::scheduler::{Arrival, Slice};
use crate::processor::trace::What;
use crate::processor::vp::{self, Masked, Vp, attention};
use crate::schedule::fork;
use crate::schedule::in_place::{abandon_in_place, stop_in_place, try_suspend_in_place};
use crate::schedule::queue_up;

/// Installs the handler, once in the life of the process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let manner = Manner { on_alternate_stack: true, restart_calls: true, ..Manner::default() };
        // SAFETY: the handler neither allocates nor takes locks that interrupted code may hold, and preserves errno.
        let installed = unsafe { signal::install(PREEMPTING, on_signal, manner) };
        installed.expect("SIGURG can be handled");
        let manner = Manner { on_alternate_stack: true, ..Manner::default() };
        // SAFETY: the handler touches nothing.
        let installed = unsafe { signal::install(interrupting_signal(), on_interruption, manner) };
        installed.expect("a real-time signal can be handled");
        condemned::prepare();
        c_library::prepare();
    });
}

unsafe extern "C" fn on_interruption(_signal: i32, _info: *mut Info, _context: *mut c_void) {}

/// Interrupts the holder of `vp`, unless it will look at `attention` by itself.
pub(crate) fn interrupt(vp: &'static Vp) {
    vp.look_at_holder(|holder| {
        let looks_itself = holder.is_masked();
        // A call that sleeps would return early, and not every caller expects that.
        if !looks_itself && holder.asleep().is_none() {
            holder.interrupt();
        }
    });
}

/// Interrupts the holder of `vp`, which is to stop, even while it sleeps.
pub(crate) fn stop(vp: &'static Vp) {
    vp.holder().interrupt();
}

unsafe extern "C" fn on_signal(_signal: i32, _info: *mut Info, context: *mut c_void) {
    if !KernelThread::is_ours() {
        return;
    }
    let thread = KernelThread::current();
    if !thread.is_masked() {
        // SAFETY: the kernel passes the interrupted context.
        let pc = unsafe { rewind(context) };
        // SAFETY: as above.
        let sp = unsafe { sp_of(context) };
        thread.registers.set(Registers { instruction: pc, stack: sp });
        preserving_errno(|| upcall(thread, Interrupted { pc, sp }));
    }
}

/// Moves interrupted code back to the start of its restartable sequence, if it is in one: what every handler does that may sleep,
/// be it for a page of its own, because its thread may lose the processor then. Where the code was interrupted.
///
/// # Safety
/// `context` is what the kernel passed to the handler that runs.
pub(crate) unsafe fn rewind(context: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    let pc = unsafe { pc_of(context) };
    if let Some(start) = restartable::rewind(pc) {
        // SAFETY: as above; `start` begins the sequence that was interrupted.
        unsafe { set_pc(context, start) };
    }
    pc
}

/// The upcall, on the interrupted thread: does what `attention` asks for, until it asks for nothing.
///
/// It does nothing if the program's own signal handler interrupts a restartable sequence, or if a lock of the C library may be
/// held: the monitor interrupts again.
fn upcall(thread: &'static KernelThread, at: Interrupted) {
    loop {
        thread.mask();
        let held = thread.held().or_else(|| thread.settle_claim());
        let running = held.and_then(|vp| vp.current.get());
        if running.is_some_and(|me| hidden::goes_on_in_the_middle(thread, me, at.sp))
            || c_library::puts_off(thread, at.pc)
        {
            return thread.unmask();
        }
        let Some(vp) = held.or_else(|| come_back(thread)) else {
            return thread.unmask();
        };
        // SAFETY: it holds it, masked.
        let vp = unsafe { Masked::assume(vp) };
        let bits = vp.serve();
        if let Some(me) = vp.current.get() {
            if bits & attention::STOP != 0 {
                stop_in_place(vp, me);
            }
            let stands_aside = me.orders.is_any() && heed(vp, me, at);
            if !stands_aside {
                reconsider(vp, me, vp::slice(bits));
            }
        }
        let vp = thread.held();
        thread.unmask();
        if vp.is_none_or(|vp| !vp.wants_more()) {
            return;
        }
    }
}

/// The thread slept in the kernel and lost its processor, and does not call us: its microprocess waits for its turn here, in the
/// handler, as one that is preempted does. `None` if it is to have none.
#[cold]
fn come_back(thread: &'static KernelThread) -> Option<&'static Vp> {
    if fork::is_orphaned() || !thread.is_stranded() {
        return None;
    }
    Some(queue_up(thread, thread.running.get()?))
}

/// Does what is ordered of `me`, which was interrupted at `at`; tells whether it stood still meanwhile.
#[cold]
fn heed(vp: Masked<'_>, me: &'static Record, at: Interrupted) -> bool {
    vp.remind(me);
    if me.is_stackless.get() {
        me.poll.store(1, Ordering::Relaxed);
        return false;
    }
    if me.orders.is_killed() {
        if !me.always_unwinds.get() && condemned::gives_up(KernelThread::current(), at) {
            abandon_in_place(vp, me);
        }
        return false;
    }
    if !me.orders.is_suspended() {
        return false;
    }
    me.state.set(State::Suspended);
    let stood_still = try_suspend_in_place(vp, me);
    if !stood_still {
        // No kernel thread to go on with: again, when there is one.
        me.state.set(State::Runnable);
        vp.shared().maker.ask(&vp);
        me.post(remote::ORDERS);
    }
    stood_still
}

/// Gives the processor to something more urgent, or to an equal if the time slice of `me` is over.
fn reconsider(vp: Masked<'_>, me: &'static Record, slice: Slice) {
    if me.destination().is_none() && !vp.queue().outranks(me, slice) {
        return;
    }
    // Machines that poll go on to their next poll; those that do not are interrupted the second time.
    if me.is_stackless.get() && me.poll.swap(1, Ordering::Relaxed) == 0 {
        return;
    }
    let thread = KernelThread::current();
    me.bound.set(Some(thread));
    vp.queue().tell(EventKind::Preempted, vp.index, Some(me));
    me.bound.set(None);
    // Behind its equals: what we suspend in place costs a kernel thread, so let it be worth it.
    vp.queue().push(me, Arrival::SliceOver);
    // Before: afterwards the processor may be another.
    vp.trace.note(What::Preempted, Some(me));
    if try_suspend_in_place(vp, me) {
        vp.counters.preempted.bump();
        return;
    }
    vp.queue().remove(me, me.level());
    vp.shared().maker.ask(&vp);
}
