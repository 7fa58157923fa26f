//! The questions to a policy of the collector, and the orders that it may give.
//!
//! The mechanism is fixed: the world stops, reachable objects are marked, the limit of the heap and
//! the bounds of users hold. A policy decides how much memory is handed out before the next
//! collection, how much free memory is kept, and how often caches are refilled.

use kyocho_heap::heap::{Orders, Statistics};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::machine::Machine;

/// The question: an association list.
pub(super) fn question(machine: &mut Machine, sums: &Statistics, limit_bytes: usize) -> Result {
    let last = sums.last;
    let rows = [
        ("live-bytes", last.live_bytes),
        ("held-bytes", last.held_bytes),
        ("freed-bytes", last.freed_bytes),
        ("resident-bytes", sums.resident_bytes),
        ("budget-bytes", sums.trigger_bytes),
        ("limit-bytes", limit_bytes),
        ("stranded-cells", last.stranded_cells),
        ("pause-ns", last.pause.as_nanos() as usize),
        ("collections", sums.collections as usize),
    ];
    let mut list = Value::NIL;
    for (name, number) in rows.into_iter().rev() {
        let name = Value::symbol(Symbol::intern(name));
        let row = machine.mutator.cons(name, Value::fixnum(number as i64))?;
        list = machine.mutator.cons(row, list)?;
    }
    Ok(list)
}

/// The orders in an answer: an association list of some of `budget-bytes`, `keep-bytes` and
/// `refill-ns`.
pub(super) fn orders(mut answer: Value) -> Result<Orders> {
    let mut orders = Orders::default();
    let wrong = |value| {
        let expected = "association list of budget-bytes, keep-bytes, refill-ns";
        Raise::wrong_type("collector policy", 1, expected, value)
    };
    // There are three orders; a circular list would have more.
    for _ in 0..3 {
        let Some((order, rest)) = answer.uncons() else { break };
        one(&mut orders, order).ok_or_else(|| wrong(order))?;
        answer = rest;
    }
    if answer.is_nil() { Ok(orders) } else { Err(wrong(answer)) }
}

fn one(orders: &mut Orders, order: Value) -> Option<()> {
    let (name, number) = order.uncons()?;
    let number = usize::try_from(number.as_fixnum()?).ok()?;
    let place = match name.as_symbol()?.name() {
        "budget-bytes" => &mut orders.budget_bytes,
        "keep-bytes" => &mut orders.keep_bytes,
        "refill-ns" => &mut orders.refill_ns,
        _ => return None,
    };
    *place = Some(number);
    Some(())
}
