//! `thread-join!`.

use super::mutex::exception;
use crate::kernel::lock;
use crate::kernel::session::thread::{LispThread, Status, ThreadObject, thread_of};
use crate::kernel::timeout::until;
use crate::kernel::wait::OnThread;
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::condition;
use kyocho_vm::machine::control::{Control, Procedure};
use std::sync::Arc;

pub(super) const TABLE: &[Procedure] = &[Procedure::new("thread-join!", 1, Some(3), join)];

/// `(thread-join! thread [timeout [timeout-value]])`.
fn join(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let thread = thread_of("thread-join!", 1, frame.get(0))?;
    let me = machine.thread()?;
    let wait = match machine.wait.take() {
        Some(wait) => wait,
        None => until("thread-join!", 2, frame.get(0), (count > 1).then(|| frame.get(1)))?,
    };
    let mut inner = lock(&thread.inner);
    match inner.status {
        Status::Returned(value) => return Ok(Control::Value(value)),
        Status::Uncaught(reason) => {
            drop(inner);
            return Err(uncaught(machine, reason));
        }
        Status::Terminated => {
            drop(inner);
            let message = "the thread was terminated";
            return Err(exception(machine, condition::TERMINATED_THREAD, message));
        }
        Status::New(_) | Status::Started | Status::Failing(_) => {}
    }
    if wait.is_over() {
        drop(inner);
        withdraw(frame.get(0), me);
        if count > 2 {
            return Ok(Control::Value(frame.get(2)));
        }
        let message = "the thread has not ended in time";
        return Err(exception(machine, condition::JOIN_TIMEOUT, message));
    }
    if !inner.joiners.iter().any(|joiner| Arc::ptr_eq(joiner, me)) {
        inner.joiners.push(Arc::clone(me));
    }
    if Arc::ptr_eq(thread, me) {
        drop(inner);
        return Ok(machine.wait_for(me, "its own end", wait));
    }
    Ok(machine.wait_for(me, "the end of another thread", wait))
}

/// Ends the wait for the end of this thread.
pub(super) fn withdraw(object: Value, me: &Arc<LispThread>) {
    if let Some(ThreadObject(thread)) = object.as_foreign() {
        lock(&thread.inner).joiners.retain(|joiner| !Arc::ptr_eq(joiner, me));
    }
}

/// The exception for joining a thread that ended with an unhandled exception.
fn uncaught(machine: &mut Machine, reason: Value) -> Raise {
    let kind = condition::UNCAUGHT;
    let message = "the thread ended with an unhandled exception";
    match condition::make(&mut machine.mutator, kind, message, &[reason]) {
        Some(payload) => Raise::new(Cause::Object { payload, continuable: false }),
        None => Raise::out_of_memory(),
    }
}
