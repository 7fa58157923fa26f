//! The orders that a policy of the scheduler may give.
//!
//! The mechanism is fixed: the runnable threads of the highest priority run, threads of equal
//! priority take turns, users' shares hold. A policy can replace the priority of each thread.

use crate::kernel::Kernel;
use crate::kernel::session::thread::LispThread;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::Priority;

/// Maximum number of orders in one answer: more than are ever useful, but finite, so that a
/// circular list ends.
const ORDERS_MAX: usize = 1 << 20;

/// A thread's number, and its new priority; `None` restores its own.
pub(super) type Order = (u64, Option<Priority>);

/// The orders in an answer: `((number . priority) ...)`.
pub(super) fn orders(mut answer: Value) -> Result<Vec<Order>> {
    let mut orders = Vec::new();
    let wrong =
        |value| Raise::wrong_type("scheduler policy", 1, "list of (number . priority)", value);
    while let Some((order, rest)) = answer.uncons() {
        orders.push(one(order).ok_or_else(|| wrong(order))?);
        if orders.len() > ORDERS_MAX {
            let message =
                format!("scheduler policy: more than {ORDERS_MAX} orders, or a circular list");
            return Err(Raise::error(message, Vec::new()));
        }
        answer = rest;
    }
    if answer.is_nil() { Ok(orders) } else { Err(wrong(answer)) }
}

fn one(order: Value) -> Option<Order> {
    let (number, level) = order.uncons()?;
    let number = u64::try_from(number.as_fixnum()?).ok()?;
    if !level.is_true() {
        return Some((number, None));
    }
    let level = u8::try_from(level.as_fixnum()?).ok()?;
    // Higher priorities are for policies and services.
    let priority = Priority::new(level).filter(|&priority| priority < LispThread::POLICY)?;
    Some((number, Some(priority)))
}

/// Carries out orders. Threads that have ended meanwhile are ignored.
pub(super) fn carry_out(kernel: &Kernel, orders: &[Order]) {
    for &(number, priority) in orders {
        if let Some(thread) = kernel.threads.find(number).filter(|thread| !thread.is_policy()) {
            thread.set_policy_priority(priority);
        }
    }
    if !kernel.policies.notes.is_empty() {
        // Events that occurred while the policy was deciding are reported at the next tick.
        kernel.shares.keep_ticking();
    }
}
