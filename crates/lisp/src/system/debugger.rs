//! The debugger's queries: the last failure and how to continue it, and what a thread is doing.
//!
//! ```text
//!  evaluation fails --> its session keeps the failure --> (bt) (locals 0) (use-value 1) (retry)
//!  (bt id): asker --request--> thread, at its next safepoint: records its callers, wakes the asker
//! ```

use crate::backtrace;
use crate::kernel::lock;
use crate::kernel::session::thread::{REQUEST_BACKTRACE, ThreadObject};
use crate::kernel::wait::OnThread;
use core::time::Duration;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::Deadline;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::resume::AGAIN;
use kyocho_vm::machine::trace::Captured;
use kyocho_vm::machine::wait::Wait;
use kyocho_vm::machine::{Exit, Machine};
use std::sync::Arc;

pub(crate) const TABLE: &[Procedure] = &[
    Procedure::new("%failure", 0, Some(0), failure),
    Procedure::new("%forget-failure!", 0, Some(0), |m, _, _| {
        m.thread()?.session.forget_failure();
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("%failure-frames", 0, Some(0), |m, _, _| failure_frames(m).map(Control::Value)),
    Procedure::new("%reinstate-again", 1, Some(1), |m, frame, _| {
        Ok(Control::Go(m.reinstate(frame.get(0), AGAIN)))
    }),
    Procedure::new("%backtrace", 1, Some(1), backtrace),
    Procedure::new("%session-value", 0, Some(0), |m, _, _| {
        Ok(Control::Value(m.thread()?.session.value()))
    }),
    Procedure::new("%keep-session-value!", 1, Some(1), |m, frame, _| {
        Ok(Control::Value(m.thread()?.session.keep_value(frame.get(0))))
    }),
];

/// Maximum number of callers in a list.
const FRAMES_MAX: usize = 64;
/// How long to wait for a thread's answer. A suspended thread does not answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// `#(object continuation at-instruction?)`, or `#f`.
fn failure(machine: &mut Machine, _: Frame, _: usize) -> Result<Control> {
    let Some(failure) = machine.thread()?.session.failure() else {
        return Ok(Control::Value(Value::FALSE));
    };
    let again = Value::boolean(failure.is_at_instruction);
    let fields = [failure.object, failure.continuation, again];
    Ok(Control::Value(machine.mutator.vector_of(&fields)?))
}

/// `((text (name . value) ...) ...)`, innermost frame first.
fn failure_frames(machine: &mut Machine) -> Result {
    let Some(failure) = machine.thread()?.session.failure() else { return Ok(Value::NIL) };
    let frames: Vec<_> = Captured::of(failure.continuation)
        .map(|frame| (frame.entry(), frame))
        .filter(|(entry, _)| backtrace::is_of_a_user(entry))
        .take(FRAMES_MAX)
        .collect();
    let mut list = Value::NIL;
    for (entry, frame) in frames.iter().rev() {
        let mut locals = Value::NIL;
        for &(name, value) in frame.locals().iter().rev() {
            let pair = machine.mutator.cons(Value::symbol(name), value)?;
            locals = machine.mutator.cons(pair, locals)?;
        }
        let text = machine.mutator.string(&backtrace::show_entry(entry))?;
        let shown = machine.mutator.cons(text, locals)?;
        list = machine.mutator.cons(shown, list)?;
    }
    Ok(list)
}

/// `(%backtrace thread)`: a list of strings; `#f` if the thread does not answer or has ended.
fn backtrace(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let value = frame.get(0);
    let thread = value.as_foreign::<ThreadObject>().map(|object| &object.0);
    let thread = thread.ok_or_else(|| Raise::wrong_type("bt", 1, "thread", value))?;
    let me = machine.thread()?;
    if Arc::ptr_eq(thread, me) {
        machine.wait = None;
        let lines = backtrace::lines_of(machine);
        return answer(machine, &lines);
    }
    let wait = match machine.wait.take() {
        Some(wait) => wait,
        None => {
            lock(&thread.inner).watchers.push(Arc::clone(me));
            thread.request(REQUEST_BACKTRACE);
            Wait { deadline: Deadline::after(PATIENCE), ..Wait::on(value) }
        }
    };
    if let Some(lines) = lock(&me.inner).callers.take() {
        return answer(machine, &lines);
    }
    let deadline = wait.deadline.filter(|_| !wait.is_over());
    let has_ended = lock(&thread.inner).status.has_ended();
    let Some(deadline) = deadline.filter(|_| !has_ended) else {
        lock(&thread.inner).watchers.retain(|watcher| !Arc::ptr_eq(watcher, me));
        return Ok(Control::Value(Value::FALSE));
    };
    machine.wait = Some(wait);
    Ok(Control::Stop(Exit::ParkUntil(deadline.ns())))
}

fn answer(machine: &mut Machine, lines: &[String]) -> Result<Control> {
    let mut list = Value::NIL;
    for line in lines.iter().rev() {
        let text = machine.mutator.string(line)?;
        list = machine.mutator.cons(text, list)?;
    }
    Ok(Control::Value(list))
}
