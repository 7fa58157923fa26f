//! SRFI 18 mutexes.

use crate::kernel::lock;
use crate::kernel::session::thread::{LispThread, ThreadObject};
use crate::kernel::timeout::until;
use crate::kernel::wait::{OnThread, Waiters};
use crate::thread::condvar;
use kyocho_heap::heap::barrier;
use kyocho_heap::heap::{ForeignObject, Marker};
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::condition;
use kyocho_vm::machine::control::{Control, Procedure};
use std::sync::{Arc, Mutex};

/// The owner of a mutex.
#[derive(Debug)]
enum Owner {
    Nobody,
    /// Locked without an owner.
    NotOwned,
    Thread(Arc<LispThread>),
}

#[derive(Debug)]
struct State {
    owner: Owner,
    abandoned: bool,
    waiters: Waiters,
    name: Value,
    specific: Value,
}

impl State {
    fn named(name: Value) -> Self {
        Self {
            owner: Owner::Nobody,
            abandoned: false,
            waiters: Waiters::default(),
            name,
            specific: Value::UNSPECIFIED,
        }
    }

    fn disown(&mut self) {
        if let Owner::Thread(thread) = core::mem::replace(&mut self.owner, Owner::Nobody) {
            barrier::overwrite(|| lock(&thread.inner).object);
        }
    }
}

/// A mutex as Lisp refers to it.
#[derive(Debug)]
struct MutexObject(Mutex<State>);

impl ForeignObject for MutexObject {
    fn trace(&self, marker: &mut Marker) {
        let state = lock(&self.0);
        marker.mark(state.name);
        marker.mark(state.specific);
        if let Owner::Thread(thread) = &state.owner {
            marker.mark(lock(&thread.inner).object);
        }
    }
}

pub(super) const TABLE: &[Procedure] = &[
    Procedure::new("make-mutex", 0, Some(1), make),
    Procedure::new("mutex?", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(Value::boolean(frame.get(0).as_foreign::<MutexObject>().is_some())))
    }),
    Procedure::new("mutex-name", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(lock(&argument("mutex-name", frame)?.0).name))
    }),
    Procedure::new("mutex-specific", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(lock(&argument("mutex-specific", frame)?.0).specific))
    }),
    Procedure::new("mutex-specific-set!", 2, Some(2), |_, frame, _| {
        let mut state = lock(&argument("mutex-specific-set!", frame)?.0);
        barrier::overwrite(|| state.specific);
        state.specific = frame.get(1);
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("mutex-state", 1, Some(1), state),
    Procedure::new("mutex-lock!", 1, Some(3), acquire),
    Procedure::new("mutex-unlock!", 1, Some(3), release),
];

fn argument(who: &'static str, frame: Frame) -> Result<&'static MutexObject> {
    let value = frame.get(0);
    value.as_foreign().ok_or_else(|| Raise::wrong_type(who, 1, "mutex", value))
}

fn make(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let name = if count > 0 { frame.get(0) } else { Value::FALSE };
    let mutex = MutexObject(Mutex::new(State::named(name)));
    Ok(Control::Value(machine.mutator.foreign(Box::new(mutex))?))
}

/// The state of a mutex in an image: whether it was abandoned, its name, its specific value.
pub(crate) type Kept = (bool, Value, Value);

/// The state for an image, or why the mutex cannot be saved; `None` if the value is not a mutex.
pub(crate) fn kept(value: Value) -> Option<core::result::Result<Kept, &'static str>> {
    let state = lock(&value.as_foreign::<MutexObject>()?.0);
    Some(if !matches!(state.owner, Owner::Nobody) {
        Err("a mutex that is locked")
    } else if !state.waiters.is_empty() {
        Err("a mutex that a thread waits for")
    } else {
        Ok((state.abandoned, state.name, state.specific))
    })
}

/// An unlocked mutex restored from an image.
pub(crate) fn restored(abandoned: bool) -> Box<dyn ForeignObject> {
    Box::new(MutexObject(Mutex::new(State { abandoned, ..State::named(Value::FALSE) })))
}

/// Completes a restored mutex.
pub(crate) fn complete_restored(value: Value, name: Value, specific: Value) {
    if let Some(mutex) = value.as_foreign::<MutexObject>() {
        let mut state = lock(&mutex.0);
        (state.name, state.specific) = (name, specific);
    }
}

fn state(_: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let state = lock(&argument("mutex-state", frame)?.0);
    let word = match &state.owner {
        Owner::Nobody if state.abandoned => "abandoned",
        Owner::Nobody => "not-abandoned",
        Owner::NotOwned => "not-owned",
        Owner::Thread(thread) => return Ok(Control::Value(lock(&thread.inner).object)),
    };
    Ok(Control::Value(Value::symbol(Symbol::intern(word))))
}

/// Maximum length of a thread's list of locked mutexes before unlocked ones are removed from it.
const HELD_MAX: usize = 32;

/// `(mutex-lock! mutex [timeout [thread]])`.
fn acquire(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let mutex = argument("mutex-lock!", frame)?;
    let me = machine.thread()?;
    let owner = match (count > 2).then(|| frame.get(2)) {
        None => Owner::Thread(Arc::clone(me)),
        Some(Value::FALSE) => Owner::NotOwned,
        Some(other) => match other.as_foreign::<ThreadObject>() {
            Some(thread) => Owner::Thread(Arc::clone(&thread.0)),
            None => return Err(Raise::wrong_type("mutex-lock!", 3, "thread or #f", other)),
        },
    };
    let wait = machine.wait.take();
    let mut state = lock(&mutex.0);
    if matches!(state.owner, Owner::Nobody) {
        state.waiters.remove(me);
        state.disown();
        state.owner = owner;
        let abandoned = core::mem::take(&mut state.abandoned);
        drop(state);
        remember(machine, frame.get(0));
        if abandoned {
            return Err(exception(machine, condition::ABANDONED_MUTEX, "the mutex was abandoned"));
        }
        return Ok(Control::Value(Value::TRUE));
    }
    let wait = match wait {
        Some(wait) => wait,
        None => until("mutex-lock!", 2, frame.get(0), (count > 1).then(|| frame.get(1)))?,
    };
    if wait.is_over() {
        state.waiters.withdraw(me);
        return Ok(Control::Value(Value::FALSE));
    }
    state.waiters.add(me);
    Ok(machine.wait_for(me, "a mutex", wait))
}

/// Ends a thread's wait here, if there is one.
pub(super) fn withdraw(object: Value, thread: &Arc<LispThread>) {
    if let Some(mutex) = object.as_foreign::<MutexObject>() {
        let mut state = lock(&mutex.0);
        state.waiters.remove(thread);
        if matches!(state.owner, Owner::Nobody) {
            state.waiters.wake_one();
        }
    }
}

/// An exception of a kind with a predicate in SRFI 18.
pub(super) fn exception(machine: &mut Machine, kind: &str, message: &str) -> Raise {
    match condition::make(&mut machine.mutator, kind, message, &[]) {
        Some(payload) => Raise::new(Cause::Object { payload, continuable: false }),
        None => Raise::out_of_memory(),
    }
}

/// Notes that the thread has locked a mutex.
fn remember(machine: &mut Machine, mutex: Value) {
    if machine.held.len() >= HELD_MAX
        && let Ok(me) = machine.thread()
    {
        machine.held.retain(|&held| held != mutex && is_held_by(held, me));
    }
    machine.held.push(mutex);
}

fn is_held_by(mutex: Value, thread: &Arc<LispThread>) -> bool {
    mutex.as_foreign::<MutexObject>().is_some_and(
        |mutex| matches!(&lock(&mutex.0).owner, Owner::Thread(owner) if Arc::ptr_eq(owner, thread)),
    )
}

/// `(mutex-unlock! mutex [condition-variable [timeout]])`.
fn release(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let mutex = argument("mutex-unlock!", frame)?;
    if machine.held.last() == Some(&frame.get(0)) {
        machine.held.pop();
    }
    if count > 1 {
        return condvar::unlock_and_wait(machine, frame, count, || unlock(mutex));
    }
    unlock(mutex);
    Ok(Control::Value(Value::TRUE))
}

fn unlock(mutex: &MutexObject) {
    let mut state = lock(&mutex.0);
    state.disown();
    state.waiters.wake_one();
}

/// Called when a thread ends: abandons the mutexes that it still owns.
pub(super) fn abandon(machine: &mut Machine, thread: &Arc<LispThread>) {
    for held in core::mem::take(&mut machine.held) {
        let Some(mutex) = held.as_foreign::<MutexObject>() else { continue };
        let mut state = lock(&mutex.0);
        if matches!(&state.owner, Owner::Thread(owner) if Arc::ptr_eq(owner, thread)) {
            state.disown();
            state.abandoned = true;
            state.waiters.wake_one();
        }
    }
}
