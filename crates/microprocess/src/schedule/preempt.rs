//! Preempted: takes the virtual processor from code that does not call the runtime.
//!
//! The monitor signals the kernel thread that holds the virtual processor. The signal handler finds
//! one of four cases:
//!
//! * *Events are masked.* Nothing is done: the code that unmasks them checks `attention`.
//! * *The thread holds no virtual processor and carries no microprocess.* The signal came too late.
//! * *The thread lost its virtual processor while it slept in the kernel.* Its microprocess is
//!   queued (Unblocked), and waits for its turn in the handler.
//! * *Otherwise* a microprocess was interrupted at an arbitrary instruction, perhaps inside the
//!   allocator or the C library. It must not continue on another kernel thread, whose thread-local
//!   state differs. Nor may another microprocess run on this thread meanwhile. So the kernel thread
//!   waits here in the handler with its microprocess, and the virtual processor goes to another
//!   kernel thread.
//!
//! If a restartable sequence was interrupted, the program counter is first moved back to its start
//! (Paper 0).
#![expect(unsafe_code, reason = "a signal handler")]

use core::ffi::c_void;
use std::sync::Once;

use kyocho_arch::{pc_of, restartable, set_pc, sp_of};
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::signal::{self, HandlerOptions, Info, preserving_errno};

use crate::processor::c_library;
use crate::processor::event::{EventKind, Registers};
use crate::processor::hidden;
use crate::processor::kernel_thread::{KernelThread, PREEMPTING, interrupting_signal};
use crate::processor::record::{Record, State, remote};
use crate::processor::runaway::{self, Interrupted};
use crate::processor::scheduler::{Arrival, Slice};
use crate::processor::trace::What;
use crate::processor::vp::{self, Masked, Vp, attention};
use crate::schedule::fork;
use crate::schedule::in_place::{abandon_in_place, stop_in_place, try_suspend_in_place};
use crate::schedule::queue_up;

/// Installs the signal handlers, once in the life of the process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let manner = HandlerOptions {
            on_alternate_stack: true,
            restart_calls: true,
            ..HandlerOptions::default()
        };
        // SAFETY: the handler neither allocates nor takes locks that interrupted code may hold, and
        // preserves errno.
        let installed = unsafe { signal::install(PREEMPTING, on_signal, manner) };
        installed.expect("SIGURG can be handled");
        let manner = HandlerOptions { on_alternate_stack: true, ..HandlerOptions::default() };
        // SAFETY: the handler does nothing.
        let installed = unsafe { signal::install(interrupting_signal(), on_interruption, manner) };
        installed.expect("a real-time signal can be handled");
        runaway::prepare();
        c_library::prepare();
    });
}

unsafe extern "C" fn on_interruption(_signal: i32, _info: *mut Info, _context: *mut c_void) {}

/// Interrupts the holder of `vp`, unless it will check `attention` by itself.
pub(crate) fn interrupt(vp: &'static Vp) {
    vp.look_at_holder(|holder| {
        let looks_itself = holder.is_masked();
        // A system call in which it sleeps would return early, and not every caller expects that.
        if !looks_itself && holder.asleep().is_none() {
            holder.interrupt();
        }
    });
}

/// Interrupts the holder of `vp`, which is to stop, even if it sleeps.
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

/// Moves interrupted code back to the start of its restartable sequence, if it is in one; returns
/// where the code was interrupted. Every signal handler that may sleep must do this, even if only
/// for a missing page of its own: the thread may then lose the virtual processor.
///
/// # Safety
/// `context` is what the kernel passed to the handler that runs.
pub(crate) unsafe fn rewind(context: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    let pc = unsafe { pc_of(context) };
    if let Some(start) = restartable::rewind(pc) {
        // SAFETY: as above; `start` is the start of the interrupted sequence.
        unsafe { set_pc(context, start) };
    }
    pc
}

/// The upcall, on the interrupted thread: serves `attention` until no bit is set.
///
/// Does nothing if a lock of the C library may be held. The monitor then interrupts again.
fn upcall(thread: &'static KernelThread, at: Interrupted) {
    loop {
        thread.mask();
        let held = thread.held_settled();
        let running = held.and_then(|vp| vp.current.get());
        if c_library::postpones(thread, at.pc) {
            return thread.unmask();
        }
        if let Some(me) = running {
            hidden::rewind(thread, me, at.sp);
        }
        let Some(vp) = held.or_else(|| come_back(thread)) else {
            return thread.unmask();
        };
        // SAFETY: the thread holds it, with events masked.
        let vp = unsafe { Masked::assume(vp) };
        let bits = vp.serve();
        if let Some(me) = vp.current.get() {
            if bits & attention::STOP != 0 {
                stop_in_place(vp, me);
            }
            let was_suspended = me.orders.is_any() && act_on_orders(vp, me, at);
            if !was_suspended {
                reconsider(vp, me, vp::slice(bits));
            }
        }
        let vp = thread.held_settled();
        thread.unmask();
        if vp.is_none_or(|vp| !vp.wants_more()) {
            return;
        }
    }
}

/// For a thread that slept in the kernel, lost its virtual processor, and does not call the
/// runtime. Its microprocess waits for its turn here, in the handler, like a preempted one. `None`
/// if it is not such a thread.
#[cold]
fn come_back(thread: &'static KernelThread) -> Option<&'static Vp> {
    if fork::is_orphaned() || !thread.is_stranded() {
        return None;
    }
    Some(queue_up(thread, thread.running.get()?))
}

/// Acts on the orders of `me`, which was interrupted at `at`; returns whether it was suspended
/// meanwhile.
#[cold]
fn act_on_orders(vp: Masked<'_>, me: &'static Record, at: Interrupted) -> bool {
    vp.remind(me);
    if me.is_stackless.get() {
        me.poll.store(1, Ordering::Relaxed);
        return false;
    }
    if me.orders.is_killed() {
        if !me.always_unwinds.get() && runaway::abandons(KernelThread::current(), at) {
            abandon_in_place(vp, me);
        }
        return false;
    }
    if !me.orders.is_suspended() {
        return false;
    }
    me.state.set(State::Suspended);
    let was_suspended = try_suspend_in_place(vp, me);
    if !was_suspended {
        // There is no kernel thread to take the virtual processor. The order is posted again.
        me.state.set(State::Runnable);
        vp.shared().maker.ask(&vp);
        me.post(remote::ORDERS);
    }
    was_suspended
}

/// Gives the virtual processor to a more urgent microprocess, or to an equal one if the time slice
/// of `me` is over.
fn reconsider(vp: Masked<'_>, me: &'static Record, slice: Slice) {
    if me.destination().is_none() && !vp.queue().outranks(me, slice) {
        return;
    }
    // Stackless machines that poll run on to their next poll. Those that do not are suspended at
    // the second interrupt.
    if me.is_stackless.get() && me.poll.swap(1, Ordering::Relaxed) == 0 {
        return;
    }
    let thread = KernelThread::current();
    me.bound.set(Some(thread));
    vp.queue().tell(EventKind::Preempted, vp.index, Some(me));
    me.bound.set(None);
    // Behind its equals: suspending it in place occupies a kernel thread, so others should get a
    // full turn.
    vp.queue().push(me, Arrival::SliceOver);
    // Recorded before the suspension: afterwards the virtual processor may be another one.
    vp.trace.note(What::Preempted, Some(me));
    if try_suspend_in_place(vp, me) {
        vp.counters.preempted.bump();
        return;
    }
    vp.queue().remove(me, me.level());
    vp.shared().maker.ask(&vp);
}
