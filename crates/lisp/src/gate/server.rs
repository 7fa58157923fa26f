//! The server side. The prelude's `(gate-serve path handler)` is built on these procedures.

use super::{bytes_argument, failed, place_argument};
use crate::kernel::lock;
use crate::kernel::session::CloseAtEnd;
use crate::kernel::session::thread::LispThread;
use crate::kernel::wait::{OnThread, Waiters};
use kyocho_gate::{Call, Failure, Server, Service};
use kyocho_heap::account::Held;
use kyocho_heap::heap::ForeignObject;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::Microprocess;
use kyocho_microprocess::channel::{Sender, bounded};
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::wait::Wait;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

pub(super) const TABLE: &[Procedure] = &[
    Procedure::new("%gate-bind", 1, Some(1), bind),
    Procedure::new("%gate-accept", 1, Some(1), accept),
    Procedure::new("%gate-request-method", 1, Some(1), |_, frame, _| {
        let request = request("%gate-request-method", frame)?;
        Ok(Control::Value(Value::fixnum(request.method.into())))
    }),
    Procedure::new("%gate-request-bytes", 1, Some(1), |machine, frame, _| {
        let request = request("%gate-request-bytes", frame)?;
        Ok(Control::Value(machine.mutator.bytevector(&request.bytes)?))
    }),
    Procedure::new("%gate-request-priority", 1, Some(1), |_, frame, _| {
        let request = request("%gate-request-priority", frame)?;
        Ok(Control::Value(Value::fixnum(request.level.into())))
    }),
    Procedure::new("%gate-reply!", 2, Some(2), |_, frame, _| {
        let request = request("%gate-reply!", frame)?;
        let bytes = bytes_argument("gate-serve", frame, 1)?;
        request.answer(Ok(bytes));
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("%gate-fail!", 1, Some(1), |_, frame, _| {
        request("%gate-fail!", frame)?.answer(Err(Failure::Panicked));
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
];

type Reply = core::result::Result<Vec<u8>, Failure>;

/// A call that awaits its answer. Dropping it without an answer makes the call fail.
#[derive(Debug)]
struct Request {
    method: u32,
    bytes: Vec<u8>,
    /// The caller's priority.
    level: u8,
    reply: Mutex<Option<Sender<Reply>>>,
}

/// A call as Lisp refers to it.
#[derive(Debug)]
struct RequestObject(Arc<Request>);

impl ForeignObject for RequestObject {}

impl Request {
    /// Sends the answer. Only the first answer counts.
    fn answer(&self, reply: Reply) {
        if let Some(sender) = lock(&self.reply).take() {
            // There is room for one answer. If the worker has gone, the answer is lost.
            let _unheard = sender.try_send(reply);
        }
    }
}

/// The queue of calls that wait for threads. The number of calls that clients may have pending
/// bounds it.
#[derive(Debug, Default)]
pub(crate) struct CallQueue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The server, with its count among the account's open ports; `None` once it is closed.
    server: Option<(Server, Option<Held>)>,
    requests: VecDeque<Arc<Request>>,
    acceptors: Waiters,
    closed: bool,
}

/// A server as Lisp refers to it.
#[derive(Debug)]
struct ServerObject(Arc<CallQueue>);

impl ForeignObject for ServerObject {}

impl CallQueue {
    /// The queue of a server.
    pub(super) fn of<'a>(value: Value) -> Option<&'a Arc<Self>> {
        value.as_foreign::<ServerObject>().map(|object| &object.0)
    }

    /// A thread stops waiting for a call. A call that was meant for it goes to another thread.
    pub(super) fn withdraw(&self, thread: &Arc<LispThread>) {
        lock(&self.state).acceptors.withdraw(thread);
    }
}

impl CloseAtEnd for CallQueue {
    fn close(&self) {
        let server = {
            let mut state = lock(&self.state);
            state.closed = true;
            state.requests.clear();
            state.acceptors.wake_all();
            state.server.take()
        };
        // Dropped without the lock, because this ends its connections.
        drop(server);
    }
}

/// The handler that the gate's workers call.
struct QueueingHandler(Arc<CallQueue>);

impl Service for QueueingHandler {
    fn serve(&self, call: &Call<'_>) -> Reply {
        let (sender, receiver) = bounded(1);
        let request = Request {
            method: call.method(),
            bytes: call.bytes().to_vec(),
            level: Microprocess::current().priority().level(),
            reply: Mutex::new(Some(sender)),
        };
        {
            let mut state = lock(&self.0.state);
            if state.closed {
                return Err(Failure::Panicked);
            }
            state.requests.push_back(Arc::new(request));
            state.acceptors.wake_one();
        }
        receiver.recv().unwrap_or(Err(Failure::Panicked))
    }
}

fn bind(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let (path, held) = place_argument("gate-serve", machine, frame)?;
    let queue = Arc::new(CallQueue::default());
    let server = Server::builder().bind(path, Arc::new(QueueingHandler(Arc::clone(&queue))));
    let server = server.map_err(|error| failed("gate-serve", &error))?;
    lock(&queue.state).server = Some((server, held));
    machine.thread()?.session.close_at_end(Arc::<CallQueue>::downgrade(&queue));
    Ok(Control::Value(machine.mutator.foreign(Box::new(ServerObject(queue)))?))
}

/// The next call, or `#f` once the server is closed.
fn accept(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let value = frame.get(0);
    let queue = CallQueue::of(value)
        .ok_or_else(|| Raise::wrong_type("%gate-accept", 1, "server", value))?;
    let thread = machine.thread()?;
    machine.wait = None;
    let mut state = lock(&queue.state);
    if let Some(request) = state.requests.front() {
        let request = machine.mutator.foreign(Box::new(RequestObject(Arc::clone(request))))?;
        state.requests.pop_front();
        state.acceptors.remove(thread);
        return Ok(Control::Value(request));
    }
    if state.closed {
        return Ok(Control::Value(Value::FALSE));
    }
    state.acceptors.add(thread);
    Ok(machine.wait_outside(thread, "a call of a gate", Wait::on(value)))
}

fn request(who: &'static str, frame: Frame) -> Result<&'static Request> {
    let value = frame.get(0);
    let request = value.as_foreign::<RequestObject>().map(|object| &*object.0);
    request.ok_or_else(|| Raise::wrong_type(who, 1, "call of a gate", value))
}
