//! SRFI 18 condition variables.

use crate::kernel::lock;
use crate::kernel::session::thread::LispThread;
use crate::kernel::timeout::until;
use crate::kernel::wait::{OnThread, Waiters};
use kyocho_heap::heap::barrier;
use kyocho_heap::heap::{ForeignObject, Marker};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_sys::prim::atomic::Ordering;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
struct State {
    waiters: Waiters,
    name: Value,
    specific: Value,
}

/// A condition variable as Lisp refers to it.
#[derive(Debug)]
struct CondvarObject(Mutex<State>);

impl ForeignObject for CondvarObject {
    fn trace(&self, marker: &mut Marker) {
        let state = lock(&self.0);
        marker.mark(state.name);
        marker.mark(state.specific);
    }
}

pub(super) const TABLE: &[Procedure] = &[
    Procedure::new("make-condition-variable", 0, Some(1), make),
    Procedure::new("condition-variable?", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(Value::boolean(frame.get(0).as_foreign::<CondvarObject>().is_some())))
    }),
    Procedure::new("condition-variable-name", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(lock(&argument("condition-variable-name", frame.get(0))?.0).name))
    }),
    Procedure::new("condition-variable-specific", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(lock(&argument("condition-variable-specific", frame.get(0))?.0).specific))
    }),
    Procedure::new("condition-variable-specific-set!", 2, Some(2), |_, frame, _| {
        let mut state = lock(&argument("condition-variable-specific-set!", frame.get(0))?.0);
        barrier::overwrite(|| state.specific);
        state.specific = frame.get(1);
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("condition-variable-signal!", 1, Some(1), |_, frame, _| {
        let condvar = argument("condition-variable-signal!", frame.get(0))?;
        lock(&condvar.0).waiters.wake_one();
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("condition-variable-broadcast!", 1, Some(1), |_, frame, _| {
        let condvar = argument("condition-variable-broadcast!", frame.get(0))?;
        lock(&condvar.0).waiters.wake_all();
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
];

fn argument(who: &'static str, value: Value) -> Result<&'static CondvarObject> {
    value.as_foreign().ok_or_else(|| Raise::wrong_type(who, 1, "condition variable", value))
}

fn make(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let name = if count > 0 { frame.get(0) } else { Value::FALSE };
    let state = State { waiters: Waiters::default(), name, specific: Value::UNSPECIFIED };
    Ok(Control::Value(machine.mutator.foreign(Box::new(CondvarObject(Mutex::new(state))))?))
}

/// The name and the specific value for an image, or why the condition variable cannot be saved;
/// `None` if the value is not one.
pub(crate) fn kept(value: Value) -> Option<core::result::Result<(Value, Value), &'static str>> {
    let state = lock(&value.as_foreign::<CondvarObject>()?.0);
    Some(if state.waiters.is_empty() {
        Ok((state.name, state.specific))
    } else {
        Err("a condition variable that a thread waits for")
    })
}

/// A condition variable restored from an image.
pub(crate) fn restored() -> Box<dyn ForeignObject> {
    let (name, specific) = (Value::FALSE, Value::UNSPECIFIED);
    Box::new(CondvarObject(Mutex::new(State { waiters: Waiters::default(), name, specific })))
}

/// Completes a restored condition variable.
pub(crate) fn complete_restored(value: Value, name: Value, specific: Value) {
    if let Some(condvar) = value.as_foreign::<CondvarObject>() {
        let mut state = lock(&condvar.0);
        (state.name, state.specific) = (name, specific);
    }
}

/// Unlocks a mutex and waits, atomically: `(mutex-unlock! mutex condition-variable [timeout])`.
pub(super) fn unlock_and_wait(
    machine: &mut Machine,
    frame: Frame,
    count: usize,
    unlock: impl FnOnce(),
) -> Result<Control> {
    let object = frame.get(1);
    let condvar = object
        .as_foreign::<CondvarObject>()
        .ok_or_else(|| Raise::wrong_type("mutex-unlock!", 2, "condition variable", object))?;
    let me = machine.thread()?;
    let waited = machine.wait.take();
    let wait = match waited {
        Some(wait) => wait,
        None => until("mutex-unlock!", 3, object, (count > 2).then(|| frame.get(2)))?,
    };
    let mut state = lock(&condvar.0);
    if waited.is_none() {
        state.waiters.add(me);
        unlock();
        return Ok(machine.wait_for(me, "a condition variable", wait));
    }
    if !me.queued.load(Ordering::Acquire) {
        return Ok(Control::Value(Value::TRUE));
    }
    if wait.is_over() {
        state.waiters.remove(me);
        return Ok(Control::Value(Value::FALSE));
    }
    Ok(machine.wait_for(me, "a condition variable", wait))
}

/// Ends a thread's wait here, if there is one.
pub(super) fn withdraw(object: Value, thread: &Arc<LispThread>) {
    if let Some(condvar) = object.as_foreign::<CondvarObject>() {
        lock(&condvar.0).waiters.withdraw(thread);
    }
}
