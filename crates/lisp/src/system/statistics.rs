//! Procedures that read the counters of system calls, and that switch running times on and off.

use crate::kernel::calls::Counted;
use crate::kernel::wait::OnThread;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{self, Control, Procedure};

pub(crate) const TABLE: &[Procedure] = &[
    Procedure::new("%system-calls", 0, Some(0), system_calls),
    Procedure::new("%measure!", 1, Some(1), |m, frame, _| {
        m.kernel()?.calls.measure(frame.get(0) == Value::fixnum(1));
        Ok(Control::Value(Value::UNSPECIFIED))
    }),
];

/// `(%system-calls)`: vectors of name, transport, count.
fn system_calls(machine: &mut Machine, _: Frame, _: usize) -> Result<Control> {
    let kernel = machine.kernel()?;
    let carried = kernel.system_call.is_carried_by_caller();
    let refills = if carried { "caller" } else { "message" };
    let of = |what: Counted| kernel.calls.counted(what);
    let (asked, cells) = (of(Counted::Refills), of(Counted::Cells));
    let mut rows = vec![
        ("cons", refills, asked),
        ("cons", "cache", cells.saturating_sub(asked)),
        ("collection", "message", kernel.heap.statistics().collections as usize),
        ("host", "outside", of(Counted::Host)),
    ];
    for (number, name) in control::system_calls() {
        rows.push((name, "step", kernel.calls.calls_of(number)));
    }
    let mut list = Value::NIL;
    for (name, how, count) in rows.into_iter().rev() {
        let symbol = |name| Value::symbol(Symbol::intern(name));
        let fields = [symbol(name), symbol(how), Value::fixnum(count as i64)];
        let row = machine.mutator.vector_of(&fields)?;
        list = machine.mutator.cons(row, list)?;
    }
    Ok(Control::Value(list))
}
