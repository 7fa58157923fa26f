//! The base: what a kernel thread does between microprocesses, on its own stack.
//!
//! ```text
//!   pool ──given a VP─────────► serve attention ──► choose ──┬─ stackful   ──► switch to its stack
//!     ▲                             ▲                        ├─ stackless  ──► run one step here
//!     │                             │                        ├─ bound      ──► pass the VP to its thread ────────┐
//!     │                             └────────────────────────┴─ nothing    ──► idle                              │
//!     └──────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
#![expect(unsafe_code, reason = "switches stacks")]

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use kyocho_arch::switch;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_sys::prim::clock::monotonic_ns;

use crate::data::stackless::Step;
use crate::processor::bell;
use crate::processor::instruments;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::pool::Pool;
use crate::processor::record::{Kind, Reason, Record, State};
use crate::processor::scheduler::Arrival;
use crate::processor::trace::What;
use crate::processor::vp::{Masked, attention};
use crate::schedule::in_place::{pass_to_bound, retire};
use crate::schedule::kill_point;
use crate::schedule::{mask, prepare_to_park};
use crate::thread::local;
use crate::thread::scope;
use crate::thread::spawn;

/// The body of a kernel thread, which first waits in the pool. Events are masked.
pub(crate) fn run(thread: &'static KernelThread) {
    while let Some(vp) = thread.await_vp() {
        // SAFETY: the thread received it, with events masked.
        let vp = unsafe { Masked::assume(vp) };
        vp.resumed();
        vp.trace.note(What::Resumed, None);
        let pool = if thread.takes_duty() { stand_in(thread, vp) } else { hold(thread, vp) };
        let Some(pool) = pool else { return };
        pool.put(thread);
    }
}

/// How often the reserve checks whether it can pass its virtual processor on.
const STAND_IN_NS: u64 = 200_000;

/// Holds the virtual processor as the reserve of the pool, and runs no microprocess. Passes the
/// virtual processor to a spare thread, or to the kernel thread of a bound microprocess. Returns
/// the pool to wait in; `None` when the runtime has stopped.
///
/// No wake reaches the reserve when a microprocess becomes runnable, so the reserve checks at
/// intervals.
#[cold]
fn stand_in(thread: &'static KernelThread, vp: Masked<'_>) -> Option<&'static Pool> {
    let pool = &vp.vp().pool;
    loop {
        vp.current.set(None);
        if vp.attention.load(Ordering::Relaxed) != 0 && vp.serve() & attention::STOP != 0 {
            retire(vp);
            return None;
        }
        if let Some(spare) = vp.take_spare() {
            thread.pass(vp.vp(), spare);
            return Some(pool);
        }
        if let Some(record) = vp.queue().take_bound() {
            if record.orders.is_any() && kill_point::is_suspended_here(record) {
                continue;
            }
            if let Some(destination) = record.destination() {
                record.send_to(vp, destination);
                continue;
            }
            if let Some(successor) = record.bound.get() {
                pass_to_bound(thread, vp, record, successor);
                return Some(pool);
            }
        }
        vp.shared().maker.poke();
        thread.idle(Some(monotonic_ns() + STAND_IN_NS));
    }
}

/// Runs microprocesses until the virtual processor is passed on; returns the pool to wait in, or
/// `None` when the runtime has stopped.
fn hold(thread: &'static KernelThread, vp: Masked<'_>) -> Option<&'static Pool> {
    let mut vp = vp;
    loop {
        if let Some(record) = vp.own().exiting.take() {
            spawn::conclude(vp, record);
        }
        if vp.attention.load(Ordering::Relaxed) != 0 {
            vp.current.set(None);
            if vp.serve() & attention::STOP != 0 {
                retire(vp);
                return None;
            }
        }
        vp.gather();
        let Some(record) = vp.own().chosen.take().or_else(|| vp.queue().pop()) else {
            if !bell::spin_or_yield(vp) {
                idle(thread, vp);
            }
            continue;
        };
        if record.orders.is_any() && kill_point::is_suspended_here(record) {
            continue;
        }
        if let Some(destination) = record.destination() {
            record.send_to(vp, destination);
            continue;
        }
        if let Some(successor) = record.bound.get() {
            let pool = &vp.vp().pool;
            pass_to_bound(thread, vp, record, successor);
            return Some(pool);
        }
        if record.is_stackless.get() {
            run_step(thread, vp, record);
        } else {
            vp.remind(record);
            vp.begin(record);
            instruments::leave_for(record);
            // SAFETY: it was queued, so it is suspended, and this thread took it out. A
            // microprocess that switches to the base continues here.
            unsafe { switch(thread.base.as_ptr(), record.context.get()) };
        }
        let held = thread.held_settled();
        let held = held.expect("a thread that returns to the base holds a virtual processor");
        // SAFETY: held as just found, with events masked.
        vp = unsafe { Masked::assume(held) };
    }
}

/// Sleeps until there is something to do.
fn idle(thread: &'static KernelThread, vp: Masked<'_>) {
    vp.current.set(None);
    let deadline_ns = vp.own().timers.least();
    let rest = vp.settle_rest();
    vp.shared().announce_idle();
    if !attention::rest(&vp.attention, attention::IDLE) {
        return;
    }
    vp.trace.note(What::Idles, None);
    let shared = vp.shared();
    vp.publish(None);
    shared.enter_idle(&vp, deadline_ns);
    if vp.queue_control().seeks_work() {
        shared.ask_for_work(&vp);
    }
    vp.rest(thread, rest, deadline_ns);
    // I/O and timers have set no bit yet.
    vp.attention.fetch_or(attention::TIMERS, Ordering::SeqCst);
    // Waits until the virtual processor is no longer claimed.
    attention::rise(&vp.attention, attention::IDLE);
    shared.leave_idle(&vp);
}

/// Runs one step of a stackless microprocess, on this stack.
fn run_step(thread: &'static KernelThread, vp: Masked<'_>, record: &'static Record) {
    vp.begin(record);
    let Some(mut machine) = record.machine.take() else { return };
    // Cleared first: what is asked for from here on sets it again.
    record.poll.store(0, Ordering::Relaxed);
    let killed = record.orders.deliver();
    thread.unmask();
    // A panic may leave the machine in the middle of a step, but it is not used again then.
    let step = || if killed { machine.killed() } else { machine.step() };
    let step = catch_unwind(AssertUnwindSafe(step)).unwrap_or(Step::Done);
    if step == Step::Done {
        drop(catch_unwind(AssertUnwindSafe(|| drop(machine))));
        local::end(record);
        let section = mask();
        let vp = section.masked();
        vp.current.set(None);
        vp.counters.ended.bump();
        record.state.set(State::Finished);
        vp.put_slot(record);
        return;
    }
    if killed {
        record.orders.end_delivery();
    }
    let section = mask();
    let vp = section.masked();
    vp.current.set(None);
    record.machine.set(Some(machine));
    let deadline = match step {
        Step::ParkUntil(deadline) => Some(deadline),
        _ => None,
    };
    // Killed during the step: nothing else would end the wait, since the kill came before it.
    let goes_on = || record.token.replace(false) || record.orders.is_killed();
    if step == Step::Yield || goes_on() {
        let yielded = step == Step::Yield;
        vp.queue().push(record, if yielded { Arrival::Yielded } else { Arrival::Woken });
    } else {
        prepare_to_park(vp, record, Reason { kind: Kind::Park, object: 0 }, deadline);
    }
}

/// Ends `me`, which is abandoned while it runs on `vp`: it leaves its scope, and its joiner is
/// woken.
pub(crate) fn conclude_abandoned(vp: Masked<'_>, me: &'static Record) {
    scope::leave_abandoned(me);
    spawn::conclude_abandoned(vp, me);
}
