//! Policies in Lisp: the right to install one, and the procedures of its thread.

mod collector;
mod scheduler;

use crate::kernel::service::policy::{KINDS, Kind, Question};
use crate::kernel::session::notes::Row;
use crate::kernel::session::thread::thread_of;
use crate::kernel::timeout::duration_of;
use crate::kernel::wait::OnThread;
use crate::thread::control;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::wait::Wait;

pub(crate) const TABLE: &[Procedure] = &[
    Procedure::new("%install-policy!", 3, Some(3), install),
    Procedure::new("remove-policy!", 1, Some(1), |m, frame, _| {
        permit(m, "remove-policy!")?;
        let kernel = m.kernel()?;
        kernel.policies.remove(&kernel, kind("remove-policy!", frame)?);
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
    Procedure::new("policies", 0, Some(0), |m, _, _| policies(m).map(Control::Value)),
    Procedure::new("%await-question", 1, Some(1), await_question),
    Procedure::new("%answer", 2, Some(2), answer),
];

fn kind(who: &'static str, frame: Frame) -> Result<Kind> {
    let value = frame.get(0);
    let kind = value.as_symbol().and_then(|symbol| Kind::of_name(symbol.name()));
    kind.ok_or_else(|| Raise::wrong_type(who, 1, "`scheduler` or `collector`", value))
}

/// Checks that the thread belongs to an operator, because a policy affects all users.
fn permit(machine: &Machine, who: &str) -> Result<()> {
    let account = &machine.thread()?.session.account;
    if account.bounds().operator {
        return Ok(());
    }
    let message = format!("{who}: {} is not an operator of the system", account.name());
    Err(Raise::error(message, Vec::new()))
}

/// `(%install-policy! kind thread seconds)`: installs the policy whose thread this is, and starts
/// the thread.
fn install(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    const WHO: &str = "install-policy!";
    permit(machine, WHO)?;
    let kernel = machine.kernel()?;
    let kind = kind(WHO, frame)?;
    let thread = thread_of(WHO, 2, frame.get(1))?;
    let patience = duration_of(WHO, 3, frame.get(2))?;
    kernel.policies.install(&kernel, kind, thread, patience);
    if let Err(raise) = control::start(machine, thread) {
        kernel.policies.ended(&kernel, thread);
        return Err(raise);
    }
    Ok(Control::Value(frame.get(1)))
}

/// `(policies)`: vectors of the kind, the number of the thread, and why the last policy was
/// dismissed.
fn policies(machine: &mut Machine) -> Result {
    let kernel = machine.kernel()?;
    let mut list = Value::NIL;
    for kind in KINDS.into_iter().rev() {
        let (number, why) = kernel.policies.holder_and_dismissal(kind);
        let number = number.map_or(Value::FALSE, |number| Value::fixnum(number as i64));
        let why = match why {
            Some(why) => machine.mutator.string(&why)?,
            None => Value::FALSE,
        };
        let fields = [Value::symbol(Symbol::intern(kind.name())), number, why];
        let row = machine.mutator.vector_of(&fields)?;
        list = machine.mutator.cons(row, list)?;
    }
    Ok(list)
}

/// `(%await-question kind)`: waits for the next question of the calling policy.
fn await_question(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let (kernel, me) = (machine.kernel()?, machine.thread()?);
    let kind = kind("%await-question", frame)?;
    machine.wait = None;
    let question = match kernel.policies.question(kind, me) {
        None => return Err(no_policy()),
        Some(Question::None) => {
            return Ok(machine.wait_outside(me, "a question", Wait::on(Value::FALSE)));
        }
        Some(Question::Threads(rows)) => threads(machine, &rows)?,
        Some(Question::Collection(sums)) => {
            collector::question(machine, &sums, kernel.heap.limits().bytes_max)?
        }
    };
    kernel.policies.record_read(kind);
    Ok(Control::Value(question))
}

/// Vectors of number, user, state, nanoseconds run, own priority.
fn threads(machine: &mut Machine, rows: &[Row]) -> Result {
    let mut list = Value::NIL;
    for row in rows.iter().rev() {
        let user = machine.mutator.string(row.account.name())?;
        let state = Value::symbol(Symbol::intern(row.state));
        let number = |number: u64| Value::fixnum(number.min(i64::MAX as u64 >> 4) as i64);
        let own = Value::fixnum(row.own.level().into());
        let fields = [number(row.number), user, state, number(row.ran_ns), own];
        let vector = machine.mutator.vector_of(&fields)?;
        list = machine.mutator.cons(vector, list)?;
    }
    Ok(list)
}

/// `(%answer kind orders)`: carries out the orders of the calling policy. An invalid order raises
/// an error, which ends the policy.
fn answer(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let (kernel, me) = (machine.kernel()?, machine.thread()?);
    let (kind, orders) = (kind("%answer", frame)?, frame.get(1));
    let answered = match kind {
        Kind::Scheduler => {
            let orders = scheduler::orders(orders)?;
            kernel.policies.answer(kind, me, || scheduler::carry_out(&kernel, &orders))
        }
        Kind::Collector => {
            let orders = collector::orders(orders)?;
            kernel.policies.answer(kind, me, || kernel.heap.obey(&orders))
        }
    };
    if answered { Ok(Control::Value(Value::UNSPECIFIED)) } else { Err(no_policy()) }
}

fn no_policy() -> Raise {
    Raise::error("the thread is not a policy with a pending question", Vec::new())
}
