//! Creating microprocesses, their beginning and end, and joining them.
//!
//! ```text
//!   spawn: slot ◄─ closure        entry: closure ─► frame, run, result ─► slot        join: slot ─► result
//! ```
//!
//! If closure and result are small, nothing is allocated: they lie in the microprocess's own slot.
#![expect(unsafe_code, reason = "moves closures and results into stack slots")]

use core::marker::PhantomData;
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::io;
use std::panic::catch_unwind;

use crate::data::priority::Priority;
use crate::processor::instruments;
use crate::processor::record::{Name, Record, State, remote};
use crate::processor::slot::{self, payload};
use crate::processor::spin;
use crate::processor::vp::Masked;
use crate::schedule::{self, mask, resume_at_point, switch_away};
use crate::thread::local;

mod builder;
mod join;
mod stored;

pub use builder::Builder;
use builder::{Placement, level_for, no_memory, no_such_processor, start};
pub use join::JoinHandle;
pub(crate) use stored::furnish;
use stored::{drop_result, fits, put_result};

/// Creates a microprocess that runs `body` at the caller's priority.
///
/// ```
/// # kyocho_microprocess::run(|| {
/// let handle = kyocho_microprocess::spawn(|| 6 * 7);
/// assert_eq!(handle.join().unwrap(), 42);
/// # }).unwrap();
/// ```
///
/// # Panics
/// The caller is not a microprocess, or there is no memory for a stack: [`Builder::spawn`] returns
/// that as an error.
#[inline]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: closure and result own everything that they refer to.
    unsafe { spawn_with(slot::NORMAL, None, None, Placement::ANY, body) }
        .expect("there is memory for one more stack")
}

/// # Safety
/// The microprocess ends before what `body` and `T` borrow.
#[inline]
unsafe fn spawn_with<F, T>(
    class: u8,
    name: Option<Name>,
    priority: Option<Priority>,
    placement: Placement,
    body: F,
) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    if const { !fits::<F>() } {
        let body: Box<dyn FnOnce() -> T + Send + '_> = Box::new(body);
        // SAFETY: the caller's promise.
        return unsafe { spawn_with(class, name, priority, placement, body) };
    }
    let section = mask();
    let vp = section.masked();
    let spawner = vp.running();
    if !placement.is_possible(&vp) {
        let failed = no_such_processor(section, placement.pin);
        drop(body);
        return failed;
    }
    let Some(record) = vp.take_slot(class) else {
        let failed = no_memory(section);
        drop(body);
        return failed;
    };
    let level = level_for(priority, spawner);
    let id = vp.new_id();
    // SAFETY: the slot was free.
    let context = unsafe { furnish::<F, T>(record, body) };
    record.renew(vp.vp(), id, level, context);
    match name {
        None => record.name.clear(),
        Some(name) => record.name.set(name),
    }
    vp.counters.spawned.bump();
    start(vp, record, placement);
    section.leave();
    Ok(JoinHandle { record, id, result: PhantomData })
}

/// The first function of a microprocess. Events are masked.
unsafe extern "C" fn entry<F, T>(argument: usize) -> !
where
    F: FnOnce() -> T + Send,
    T: Send,
{
    let record = ptr::with_exposed_provenance::<Record>(argument);
    // SAFETY: `furnish` passed the address of a record.
    let record = unsafe { &*record };
    instruments::begin(record);
    // SAFETY: `furnish` stored the closure there, and only this code takes it.
    let body = unsafe { payload::<F>(record).read() };
    // A panic ends only this microprocess, and leaves shared state as any panic does. If it was
    // killed before it began, it unwinds here.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        resume_at_point();
        body()
    }));
    record.is_ending.set(true);
    local::end(record);
    // SAFETY: this is the microprocess of the slot, and the closure was moved out.
    unsafe { put_result(record, outcome) };
    finish(record, drop_result::<T>)
}

/// Ends the calling microprocess at once, with `value` as its result. Calls `last` and drops
/// microprocess-local values first.
///
/// For interfaces such as C's, whose threads may end in the middle of a call. From here on a kill
/// has no effect, so `last` runs to its end.
///
/// # Panics
/// The caller is not a microprocess, or has no stack.
///
/// # Safety
/// The microprocess was spawned with a closure that returns `T`. No value on its stack needs to be
/// dropped, and there is no reference to one elsewhere: the frames disappear without unwinding, as
/// after `longjmp`.
pub unsafe fn exit<T: Send>(value: T, last: impl FnOnce()) -> ! {
    let me = schedule::current();
    assert!(!me.is_stackless.get(), "a microprocess without a stack ends by `Step::Done`");
    me.in_place.set(false);
    me.is_ending.set(true);
    last();
    local::end(me);
    // SAFETY: this is the microprocess of the slot, whose closure was moved out when it began. That
    // the result is a `T` is the caller's promise.
    unsafe { put_result::<T>(me, Ok(value)) };
    finish(me, drop_result::<T>)
}

/// The end of the calling microprocess, whose result is in its slot.
fn finish(me: &'static Record, drop_result: fn(&'static Record)) -> ! {
    let mut section = mask();
    instruments::release(me);
    me.completion.lock.acquire();
    if me.completion.detached.get() {
        me.completion.lock.release();
        section.leave();
        drop_result(me);
        section = mask();
        me.completion.lock.acquire();
    }
    let vp = section.masked();
    me.state.set(State::Finished);
    if spin::is_needed() {
        // A joiner on another virtual processor would recycle the present stack, so the base
        // finishes the work.
        me.completion.finishing.set(true);
        me.completion.lock.release();
        vp.own().exiting.set(Some(me));
        schedule::leave_stack(me);
    }
    me.completion.lock.release();
    // The joiner may recycle this stack, but only when it runs, which is after the switch below.
    conclude(vp, me);
    switch_away(vp, me);
    unreachable!("a finished microprocess was resumed")
}

/// Marks `record` finished and wakes its joiner, or frees the slot if there is no handle.
#[inline]
pub(crate) fn conclude(vp: Masked<'_>, record: &'static Record) {
    let completion = &record.completion;
    vp.counters.ended.bump();
    completion.lock.acquire();
    completion.finished.set(true);
    let joiner = completion.joiner.take();
    let detached = completion.detached.get();
    completion.lock.release();
    match joiner {
        Some(joiner) if vp.is_home_of(joiner) => vp.wake(joiner),
        Some(joiner) => joiner.post_from(vp, remote::WAKE),
        None if detached => vp.put_slot(record),
        None => {}
    }
}

/// Marks `record`, which runs on `vp`, as ended without a result. It never leaves its stack, which
/// is never reused.
pub(crate) fn conclude_abandoned(vp: Masked<'_>, record: &'static Record) {
    record.state.set(State::Abandoned);
    let completion = &record.completion;
    completion.lock.acquire();
    completion.abandoned.set(true);
    // Its slot must not be freed.
    completion.detached.set(false);
    completion.lock.release();
    conclude(vp, record);
}
