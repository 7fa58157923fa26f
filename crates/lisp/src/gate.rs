//! Gates in Lisp: calls to other programs, and servers whose calls are served by threads (paper 1,
//! §4).
//!
//! ```text
//! (gate-call ..)  --> a carrier, which is a microprocess, calls and parks --> wakes the thread
//! a client's call --> the gate's worker adds it to the server's queue, and parks
//!                     --> (%gate-accept ..) --> a thread --> its reply unparks the worker
//! ```
//!
//! Requests and replies are bytevectors, whose meaning is up to the two programs. A Lisp thread
//! that waits here waits for an external event, so it does not count as deadlocked.

mod client;
mod server;

use crate::kernel::session::CloseAtEnd;
use crate::kernel::session::thread::LispThread;
use client::Connection;
use kyocho_gate::INLINE_BYTES_MAX;
use kyocho_heap::account::Held;
use kyocho_heap::heap::Kind;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_library::port::{count, permit};
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::wait::Wait;
use server::CallQueue;
use std::path::PathBuf;
use std::sync::Arc;

/// The control procedures of both sides.
pub(crate) const TABLES: [&[Procedure]; 3] = [TABLE, client::TABLE, server::TABLE];

const TABLE: &[Procedure] = &[
    Procedure::new("gate?", 1, Some(1), |_, frame, _| {
        let value = frame.get(0);
        let is_gate = value.as_foreign::<Connection>().is_some() || CallQueue::of(value).is_some();
        Ok(Control::Value(Value::boolean(is_gate)))
    }),
    Procedure::new("gate-close!", 1, Some(1), close),
];

/// Closes either side. Pending calls end with an error at the client. A server's threads run on
/// until they end.
fn close(_: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let gate = frame.get(0);
    if let Some(connection) = gate.as_foreign::<Connection>() {
        connection.close();
    } else if let Some(queue) = CallQueue::of(gate) {
        queue.close();
    } else {
        return Err(Raise::wrong_type("gate-close!", 1, "gate", gate));
    }
    Ok(Control::Value(Value::UNSPECIFIED))
}

/// Withdraws a thread's wait at a gate, if this is one.
pub(crate) fn withdraw(wait: &Wait, thread: &Arc<LispThread>) {
    if let Some(connection) = wait.object.as_foreign::<Connection>() {
        connection.withdraw(wait.stage);
    } else if let Some(queue) = CallQueue::of(wait.object) {
        queue.withdraw(thread);
    }
}

/// Argument 0: the path of a gate. It is a file of the host, so it needs permission, and the gate
/// counts as an open port.
fn place_argument(
    who: &'static str,
    machine: &Machine,
    frame: Frame,
) -> Result<(PathBuf, Option<Held>)> {
    let value = frame.get(0);
    let text = Some(value).filter(|value| value.is_kind(Kind::String)).and_then(Value::to_text);
    let path = text.ok_or_else(|| Raise::wrong_type(who, 1, "string", value))?;
    permit(&machine.mutator, who, &path)?;
    Ok((PathBuf::from(path), count(&machine.mutator, who)?))
}

/// Argument `i`: bytes that fit a frame.
fn bytes_argument(who: &'static str, frame: Frame, i: u16) -> Result<Vec<u8>> {
    let value = frame.get(i);
    let length = value.bytevector_length();
    let length =
        length.ok_or_else(|| Raise::wrong_type(who, usize::from(i) + 1, "bytevector", value))?;
    if length > INLINE_BYTES_MAX {
        let bound = format!("at most {INLINE_BYTES_MAX} bytes");
        return Err(Raise::out_of_range(who, usize::from(i) + 1, value, bound));
    }
    Ok(value.to_bytes().unwrap_or_default())
}

/// The error for a failure at a gate.
fn failed(who: &str, error: &kyocho_gate::Error) -> Raise {
    Raise::error(format!("{who}: {error}"), Vec::new())
}
