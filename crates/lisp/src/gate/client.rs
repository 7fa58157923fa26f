//! `(gate-connect path)` and `(gate-call gate method bytes [seconds])`.

use super::{bytes_argument, failed, place_argument};
use crate::kernel::lock;
use crate::kernel::session::thread::LispThread;
use crate::kernel::timeout::duration_of;
use crate::kernel::wait::OnThread;
use core::time::Duration;
use kyocho_gate::{Client, Error, ROOT};
use kyocho_heap::account::Held;
use kyocho_heap::heap::ForeignObject;
use kyocho_heap::raise::{Raise, Result};
use kyocho_microprocess::{Builder, Microprocess};
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::wait::{Stage, Wait};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub(super) const TABLE: &[Procedure] = &[
    Procedure::new("gate-connect", 1, Some(1), connect),
    Procedure::new("gate-call", 3, Some(4), call),
];

/// A connection as Lisp refers to it.
#[derive(Debug)]
pub(super) struct Connection {
    /// The client, with its count among the account's open ports; `None` once the connection is
    /// closed.
    client: Mutex<Option<(Client, Option<Held>)>>,
    calls: Arc<Mutex<Calls>>,
}

impl ForeignObject for Connection {}

/// The pending calls, by number.
#[derive(Debug, Default)]
struct Calls {
    next: u64,
    pending: BTreeMap<u64, Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    /// The microprocess that makes the call; `None` while it starts.
    carrier: Option<Microprocess>,
    outcome: Option<core::result::Result<Vec<u8>, Error>>,
}

/// The arguments of a call.
struct Request {
    method: u32,
    bytes: Vec<u8>,
    limit: Option<Duration>,
}

impl Connection {
    pub(super) fn close(&self) {
        // Dropping the last clone ends the connection. Waiting carriers hold clones, so they are
        // ended.
        drop(lock(&self.client).take());
        for pending in lock(&self.calls).pending.values() {
            end(pending);
        }
    }

    /// Starts a carrier that makes the call at the thread's priority. Returns the call's number.
    fn begin(
        &self,
        thread: &Arc<LispThread>,
        request: Request,
    ) -> core::result::Result<u64, Error> {
        let client =
            lock(&self.client).as_ref().map(|(client, _)| client.clone()).ok_or(Error::Closed)?;
        let number = {
            let mut calls = lock(&self.calls);
            calls.next += 1;
            let number = calls.next;
            calls.pending.insert(number, Pending::default());
            number
        };
        let (calls, caller) = (Arc::clone(&self.calls), Arc::clone(thread));
        let carrier = Builder::new().name("gate carrier").priority(lock(&thread.inner).priority);
        let carrier = carrier.spawn(move || {
            let delivery = Delivery { number, calls, caller };
            delivery.deliver(ask(&client, &request));
        });
        let mut calls = lock(&self.calls);
        match (carrier, calls.pending.get_mut(&number)) {
            (Ok(carrier), Some(pending)) => pending.carrier = Some(carrier.microprocess()),
            (Ok(_), None) => {}
            (Err(why), _) => {
                calls.pending.remove(&number);
                return Err(why.into());
            }
        }
        Ok(number)
    }

    /// The outcome of a call, if it has arrived.
    fn collect(&self, number: u64) -> Option<core::result::Result<Vec<u8>, Error>> {
        let mut calls = lock(&self.calls);
        let outcome = calls.pending.get_mut(&number)?.outcome.take()?;
        calls.pending.remove(&number);
        Some(outcome)
    }

    fn put_back(&self, number: u64, reply: Vec<u8>) {
        let pending = Pending { carrier: None, outcome: Some(Ok(reply)) };
        lock(&self.calls).pending.insert(number, pending);
    }

    /// The caller abandons the call; its carrier is ended.
    pub(super) fn withdraw(&self, stage: Stage) {
        if let Stage::Sent(number) = stage
            && let Some(pending) = lock(&self.calls).pending.remove(&number)
        {
            end(&pending);
        }
    }
}

fn end(pending: &Pending) {
    if let Some(carrier) = pending.carrier.as_ref().filter(|_| pending.outcome.is_none()) {
        // It may have ended by itself already.
        let _gone = carrier.kill();
    }
}

fn ask(client: &Client, request: &Request) -> core::result::Result<Vec<u8>, Error> {
    let target = client.target(ROOT);
    let target = match request.limit {
        Some(limit) => target.within(limit),
        None => target,
    };
    target.call(request.method, &request.bytes)
}

/// Where the outcome of a call is delivered. If it is dropped without an outcome, the carrier was
/// killed.
struct Delivery {
    number: u64,
    calls: Arc<Mutex<Calls>>,
    caller: Arc<LispThread>,
}

impl Delivery {
    fn deliver(&self, outcome: core::result::Result<Vec<u8>, Error>) {
        if let Some(pending) = lock(&self.calls).pending.get_mut(&self.number) {
            pending.outcome.get_or_insert(outcome);
            self.caller.wake();
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.deliver(Err(Error::Closed));
    }
}

fn connect(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let (path, held) = place_argument("gate-connect", machine, frame)?;
    // Connecting may take long, so collections may run meanwhile.
    let client = machine.outside(frame, count, || Client::connect(path));
    let client = client.map_err(|error| failed("gate-connect", &error))?;
    let connection = Connection { client: Mutex::new(Some((client, held))), calls: Arc::default() };
    Ok(Control::Value(machine.mutator.foreign(Box::new(connection))?))
}

fn call(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "gate-call";
    let gate = frame.get(0);
    let connection: &Connection =
        gate.as_foreign().ok_or_else(|| Raise::wrong_type(WHO, 1, "connection to a gate", gate))?;
    let thread = machine.thread()?;
    let begun = match machine.wait.take() {
        Some(Wait { stage: Stage::Sent(number), .. }) => number,
        _ => {
            let request = request(frame, count)?;
            connection.begin(thread, request).map_err(|error| failed(WHO, &error))?
        }
    };
    let wait = Wait { stage: Stage::Sent(begun), ..Wait::on(gate) };
    match connection.collect(begun) {
        Some(Ok(reply)) => machine.mutator.bytevector(&reply).map(Control::Value).map_err(|full| {
            // If this call is repeated after a collection, it must find its reply and not send the
            // request again.
            if !machine.out_of_memory_is_final {
                connection.put_back(begun, reply);
                machine.wait = Some(wait);
            }
            full.into()
        }),
        Some(Err(error)) => Err(failed(WHO, &error)),
        None => Ok(machine.wait_outside(thread, "a gate's answer", wait)),
    }
}

/// The arguments of `gate-call`, checked.
fn request(frame: Frame, count: usize) -> Result<Request> {
    const WHO: &str = "gate-call";
    let method = frame.get(1);
    let number =
        method.as_fixnum().ok_or_else(|| Raise::wrong_type(WHO, 2, "exact integer", method))?;
    let number = u32::try_from(number)
        .map_err(|_| Raise::out_of_range(WHO, 2, method, format!("0 <= method <= {}", u32::MAX)))?;
    let limit = (count > 3).then(|| frame.get(3)).filter(|limit| limit.is_true());
    let limit = limit.map(|limit| duration_of(WHO, 4, limit)).transpose()?;
    Ok(Request { method: number, bytes: bytes_argument(WHO, frame, 2)?, limit })
}
