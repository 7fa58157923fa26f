//! Shared memory across nodes, in Lisp (paper 3): the primitives of the library `(kyocho dsm)`.
//!
//! ```text
//!   (shared-vector-ref v i) ──> the node's copy, or its page is fetched ──> a value
//!   (shared-acquire! lock ..) ─> the node asks the lock manager. Meanwhile the thread is outside
//!                                Lisp, and others run
//!   (make-shared-region n a) ──> all nodes make it, in a space of 2^64 bytes (`region.rs`)
//! ```
//!
//! The process is one node, joined when a program first needs it. Its Lisp threads are the node's
//! threads. A shared vector holds values with the same meaning on all nodes: small exact integers,
//! flonums, booleans, characters, the empty list.

mod element;
pub(crate) mod region;

use crate::kernel::lock;
use crate::kernel::session::thread::LispThread;
use crate::kernel::wait::OnThread;
use core::fmt;
use element::Element;
use kyocho_dsm::{
    BarrierKind, CheckedNode, ConditionId, Dsm, Error, LockId, Mode, NodeId, Placement, Settings,
    SharedArray, ThreadId, WaitPolicy, Waiters,
};
use kyocho_heap::account::Bounds;
use kyocho_heap::heap::ForeignObject;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use std::sync::{Arc, Mutex, OnceLock};

/// The node of this process.
static NODE: Mutex<Option<Arc<CheckedNode>>> = Mutex::new(None);

/// Thread numbers of a node. Lisp threads whose numbers differ by a multiple of this would be
/// confused.
const THREADS: u64 = 1 << 15;

/// A shared vector as Lisp refers to it; empty before it is allocated. It is created first, because
/// a call that runs out of Lisp memory is repeated. Shared memory must be allocated exactly once,
/// in the same order on all nodes.
#[derive(Debug, Default)]
struct SharedVector(OnceLock<SharedArray<Element>>);

impl ForeignObject for SharedVector {}

pub(crate) const TABLE: &[Procedure] = &[
    Procedure::new("shared-node", 0, Some(0), |machine, frame, count| {
        let rank = node("shared-node", machine, (frame, count))?.rank();
        Ok(Control::Value(Value::fixnum(rank.into())))
    }),
    Procedure::new("shared-nodes", 0, Some(0), |machine, frame, count| {
        let nodes = node("shared-nodes", machine, (frame, count))?.nodes();
        Ok(Control::Value(Value::fixnum(nodes.into())))
    }),
    Procedure::new("shared-join!", 2, Some(2), join_with),
    Procedure::new("shared-statistics", 0, Some(0), statistics),
    Procedure::new("shared-move-lock!", 2, Some(2), |machine, frame, count| {
        const WHO: &str = "shared-move-lock!";
        let (lock, to) = (LockId(number(WHO, frame, 0)?), node_number(WHO, frame, 1)?);
        call(WHO, machine, (frame, count), |node, thread| node.move_lock(thread, lock, to))?;
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("shared-vector-move!", 4, Some(4), move_elements),
    Procedure::new("shared-vector-place", 0, Some(0), |machine, _, _| {
        let vector = Box::new(SharedVector::default());
        Ok(Control::Value(machine.mutator.foreign(vector)?))
    }),
    Procedure::new("shared-vector-allocate!", 2, Some(3), allocate),
    Procedure::new("shared-vector?", 1, Some(1), |_, frame, _| {
        let is_one = frame.get(0).as_foreign::<SharedVector>().is_some();
        Ok(Control::Value(Value::boolean(is_one)))
    }),
    Procedure::new("shared-vector-length", 1, Some(1), |_, frame, _| {
        let length = vector("shared-vector-length", frame)?.len();
        Ok(Control::Value(Value::fixnum(length as i64)))
    }),
    Procedure::new("shared-vector-ref", 2, Some(2), get),
    Procedure::new("shared-vector-set!", 3, Some(3), set),
    Procedure::new("shared-acquire!", 3, Some(3), acquire),
    Procedure::new("shared-unlock!", 1, Some(1), |machine, frame, count| {
        const WHO: &str = "shared-unlock!";
        let lock = LockId(number(WHO, frame, 0)?);
        call(WHO, machine, (frame, count), |node, thread| node.release(thread, lock))?;
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("shared-wait!", 2, Some(2), |machine, frame, count| {
        const WHO: &str = "shared-wait!";
        let (lock, condition) = (LockId(number(WHO, frame, 0)?), number(WHO, frame, 1)?);
        let given_up = given_up(machine)?;
        call(WHO, machine, (frame, count), |node, thread| {
            node.wait(thread, lock, ConditionId(condition), &given_up)
        })?;
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("shared-signal!", 2, Some(2), |machine, frame, count| {
        signal("shared-signal!", machine, (frame, count), Waiters::One)
    }),
    Procedure::new("shared-broadcast!", 2, Some(2), |machine, frame, count| {
        signal("shared-broadcast!", machine, (frame, count), Waiters::All)
    }),
    Procedure::new("shared-cross!", 1, Some(1), |machine, frame, count| {
        let single = frame.get(0).is_true();
        let kind = if single { BarrierKind::SingleReadWrite } else { BarrierKind::Ordinary };
        call("shared-barrier", machine, (frame, count), |node, thread| node.barrier(thread, kind))?;
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
];

/// Leaves in an orderly way if this process is a node; called when a program ends without an error.
/// Blocks until all nodes have come to this point.
///
/// # Errors
/// A node is dead; the error is a message.
pub fn leave() -> core::result::Result<(), impl fmt::Display> {
    let node = lock(&NODE).take();
    node.map_or(Ok(()), |node| node.leave(ThreadId::FIRST))
}

/// `(shared-vector-allocate! place length [region])`
fn allocate(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "make-shared-vector";
    let length = number(WHO, frame, 1)? as usize;
    let region = if count > 2 { Some(region::argument(WHO, frame, 2)?) } else { None };
    let elements = call(WHO, machine, (frame, count), |node, thread| match region {
        Some(region) => node.array(region, length),
        None => node.allocate(thread, length, Placement::Blocks),
    })?;
    let vector = frame.get(0);
    let place = vector.as_foreign::<SharedVector>().filter(|place| place.0.set(elements).is_ok());
    place.ok_or_else(|| Raise::wrong_type(WHO, 1, "shared vector without memory", vector))?;
    Ok(Control::Value(vector))
}

/// `(shared-join! bytes locks)`
fn join_with(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "shared-join!";
    let value = frame.get(0);
    let bytes =
        value.as_fixnum().ok_or_else(|| Raise::wrong_type(WHO, 1, "exact integer", value))?;
    let memory_bytes = usize::try_from(bytes);
    let memory_bytes =
        memory_bytes.map_err(|_| Raise::out_of_range(WHO, 1, value, "0 < bytes".to_owned()))?;
    let settings = Settings { memory_bytes, locks: number(WHO, frame, 1)? };
    permit(WHO, machine)?;
    if lock(&NODE).is_some() {
        let late = "shared-join!: this program has joined already: set the sizes before any other use of shared memory";
        return Err(Raise::error(late.to_owned(), Vec::new()));
    }
    let joined = machine.outside(frame, count, || join(settings));
    joined.map_err(|error| failed(WHO, &error))?;
    Ok(Control::Value(Value::UNSPECIFIED))
}

/// `(shared-statistics)`: an association list of numbers.
fn statistics(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let counted =
        call("shared-statistics", machine, (frame, count), |node, _| Ok(node.statistics()))?;
    let mut list = Value::NIL;
    for (name, figure) in counted.figures().into_iter().rev() {
        let name = Value::symbol(Symbol::intern(&name.replace('_', "-")));
        let figure = Value::fixnum(figure.min(i64::MAX as u64 >> 4) as i64);
        let pair = machine.mutator.cons(name, figure)?;
        list = machine.mutator.cons(pair, list)?;
    }
    Ok(Control::Value(list))
}

/// `(shared-vector-move! vector start end node)`
fn move_elements(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "shared-vector-move!";
    let (elements, to) = (vector(WHO, frame)?, node_number(WHO, frame, 3)?);
    let (start, end) = (number(WHO, frame, 1)? as usize, number(WHO, frame, 2)? as usize);
    let bound = |least| format!("{least} <= index <= {}", elements.len());
    if end > elements.len() || start > end {
        return Err(Raise::out_of_range(WHO, 3, frame.get(2), bound(start)));
    }
    call(WHO, machine, (frame, count), |node, thread| {
        node.move_elements(thread, &elements, start..end, to)
    })?;
    Ok(Control::Value(Value::UNSPECIFIED))
}

fn get(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "shared-vector-ref";
    let (elements, index) = place(WHO, frame)?;
    let element =
        call(WHO, machine, (frame, count), |node, thread| node.get(thread, &elements, index))?;
    element::value(&mut machine.mutator, element).map(Control::Value)
}

fn set(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "shared-vector-set!";
    let (elements, index) = place(WHO, frame)?;
    let value = frame.get(2);
    let expected = "exact integer of 61 bits, flonum, boolean, character or empty list";
    let element = element::of(value).ok_or_else(|| Raise::wrong_type(WHO, 3, expected, value))?;
    call(WHO, machine, (frame, count), |node, thread| node.set(thread, &elements, index, element))?;
    Ok(Control::Value(Value::UNSPECIFIED))
}

/// `(shared-acquire! lock exclusive? wait?)`: returns whether the lock was acquired. With `wait?`,
/// that fails only if the thread must stop or end.
fn acquire(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "shared-lock!";
    let lock = LockId(number(WHO, frame, 0)?);
    let mode = if frame.get(1).is_true() { Mode::Exclusive } else { Mode::NonExclusive };
    let patience = if frame.get(2).is_true() { WaitPolicy::Wait } else { WaitPolicy::Try };
    let given_up = given_up(machine)?;
    let has = call(WHO, machine, (frame, count), |node, thread| {
        node.acquire(thread, lock, mode, patience, &given_up)
    })?;
    machine.has_shared_locks |= has;
    Ok(Control::Value(Value::boolean(has)))
}

/// Called when a thread has ended: releases its locks, because another thread may get its number.
/// Blocks as a release does.
pub(crate) fn abandon(thread: &LispThread) {
    let node = lock(&NODE).clone();
    if let Some(node) = node {
        // If a node is dead, the lock is lost for all nodes.
        let _died = node.release_all(number_of(thread));
    }
}

fn number_of(thread: &LispThread) -> ThreadId {
    ThreadId((thread.id % THREADS) as u16)
}

fn signal(
    who: &'static str,
    machine: &mut Machine,
    (frame, count): (Frame, usize),
    whom: Waiters,
) -> Result<Control> {
    let (lock, condition) = (LockId(number(who, frame, 0)?), number(who, frame, 1)?);
    call(who, machine, (frame, count), |node, thread| {
        node.signal(thread, lock, ConditionId(condition), whom)
    })?;
    Ok(Control::Value(Value::UNSPECIFIED))
}

/// The node of this process. The first call joins, and waits for all other nodes.
fn node(
    who: &'static str,
    machine: &mut Machine,
    (frame, count): (Frame, usize),
) -> Result<Arc<CheckedNode>> {
    permit(who, machine)?;
    // A thread that is joining holds the lock for a long time.
    let joined = NODE.try_lock().ok().and_then(|node| node.clone());
    if let Some(node) = joined {
        return Ok(node);
    }
    machine.outside(frame, count, || join(Settings::default())).map_err(|error| failed(who, &error))
}

/// Checks that the thread may use shared memory.
fn permit(who: &'static str, machine: &Machine) -> Result<()> {
    let Bounds { files, .. } = machine.thread()?.session.account.bounds();
    if files {
        return Ok(());
    }
    let refusal = format!("{who}: this user may not share memory with other processes");
    Err(Raise::error(refusal, Vec::new()))
}

/// The node of this process, joined now if necessary.
fn join(settings: Settings) -> core::result::Result<Arc<CheckedNode>, Error> {
    let mut node = lock(&NODE);
    if let Some(node) = &*node {
        return Ok(Arc::clone(node));
    }
    let joined = Arc::new(Dsm::join(settings)?.checked());
    Ok(Arc::clone(node.insert(joined)))
}

/// Runs an operation as a thread of the node, outside Lisp, because it may take long.
fn call<T>(
    who: &'static str,
    machine: &mut Machine,
    (frame, count): (Frame, usize),
    act: impl FnOnce(&CheckedNode, ThreadId) -> core::result::Result<T, Error>,
) -> Result<T> {
    let node = node(who, machine, (frame, count))?;
    let number = number_of(machine.thread()?);
    let done = machine.outside(frame, count, || act(&node, number));
    done.map_err(|error| failed(who, &error))
}

/// Whether the thread must stop or end. It does so after this call.
fn given_up(machine: &Machine) -> Result<impl Fn() -> bool + use<>> {
    let thread = Arc::clone(machine.thread()?);
    Ok(move || thread.has_request())
}

fn failed(who: &str, error: &Error) -> Raise {
    Raise::error(format!("{who}: {error}"), Vec::new())
}

/// Argument 0: a shared vector.
fn vector(who: &'static str, frame: Frame) -> Result<SharedArray<Element>> {
    let value = frame.get(0);
    let vector = value.as_foreign::<SharedVector>().and_then(|vector| vector.0.get().copied());
    vector.ok_or_else(|| Raise::wrong_type(who, 1, "shared vector", value))
}

/// Arguments 0 and 1: a shared vector, and an index into it.
fn place(who: &'static str, frame: Frame) -> Result<(SharedArray<Element>, usize)> {
    let (elements, value) = (vector(who, frame)?, frame.get(1));
    let index =
        value.as_fixnum().ok_or_else(|| Raise::wrong_type(who, 2, "exact integer", value))?;
    let inside = usize::try_from(index).ok().filter(|index| *index < elements.len());
    let bound = || format!("0 <= index < {}", elements.len());
    let index = inside.ok_or_else(|| Raise::out_of_range(who, 2, value, bound()))?;
    Ok((elements, index))
}

/// Argument `i`: the number of a node.
fn node_number(who: &'static str, frame: Frame, i: u16) -> Result<NodeId> {
    let bound = || format!("0 <= node <= {}", u16::MAX);
    let number = u16::try_from(number(who, frame, i)?).map(NodeId);
    number.map_err(|_| Raise::out_of_range(who, usize::from(i) + 1, frame.get(i), bound()))
}

/// Argument `i`: the number of a lock or a condition, or of elements.
fn number(who: &'static str, frame: Frame, i: u16) -> Result<u32> {
    let (value, position) = (frame.get(i), usize::from(i) + 1);
    let number = value
        .as_fixnum()
        .ok_or_else(|| Raise::wrong_type(who, position, "exact integer", value))?;
    let bound = || format!("0 <= number <= {}", u32::MAX);
    u32::try_from(number).map_err(|_| Raise::out_of_range(who, position, value, bound()))
}
