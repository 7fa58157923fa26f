//! The questions to a policy of the scheduler, and the orders that it may give.
//!
//! The mechanism is fixed: the runnable threads of the highest priority run, threads of equal
//! priority take turns, users' shares hold. A policy can replace the priority of each thread.

use crate::system::kernel::{Kernel, lock};
use crate::thread::lisp_thread::{LispThread, WAITING};
use kyocho_heap::account::Account;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_microprocess::Priority;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of threads in one question.
const ROWS_MAX: usize = 1024;
/// Maximum number of threads with unreported events. If there are that many, further threads are
/// reported when they run next.
const NOTES_MAX: usize = 1 << 16;
/// Maximum number of orders in one answer: more than are ever useful, but finite, so that a
/// circular list ends.
const ORDERS_MAX: usize = 1 << 20;

/// A thread with events since the last question.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) number: u64,
    pub(super) account: Arc<Account>,
    pub(super) state: &'static str,
    /// Its running time since it was last reported.
    pub(super) ran_ns: u64,
    /// Its own priority, which a policy's order replaces.
    pub(super) own: Priority,
}

/// Threads with events: they became ready, blocked, ran, or ended.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    wanted: AtomicBool,
    threads: Mutex<Vec<Arc<LispThread>>>,
}

impl Notes {
    pub(super) fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Release);
        for thread in core::mem::take(&mut *lock(&self.threads)) {
            thread.noted.store(false, Ordering::Release);
        }
    }

    /// Whether there is a policy to report to.
    #[inline]
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.threads).is_empty()
    }

    /// Records an event of the thread.
    pub(crate) fn note(&self, thread: &Arc<LispThread>) {
        if thread.is_policy() || thread.noted.load(Ordering::Acquire) {
            return;
        }
        let mut threads = lock(&self.threads);
        if threads.len() < NOTES_MAX && !thread.noted.swap(true, Ordering::AcqRel) {
            threads.push(Arc::clone(thread));
        }
    }

    pub(super) fn take(&self) -> Vec<Row> {
        let mut threads = lock(&self.threads);
        let count = threads.len().min(ROWS_MAX);
        let reported: Vec<_> = threads.drain(..count).collect();
        drop(threads);
        reported.iter().map(Row::of).collect()
    }
}

impl Row {
    fn of(thread: &Arc<LispThread>) -> Self {
        // Events from here on are recorded again.
        thread.noted.store(false, Ordering::Release);
        let (ended, own) = {
            let inner = lock(&thread.inner);
            (inner.status.has_ended(), inner.priority)
        };
        let waits = thread.state.load(Ordering::Acquire) == WAITING;
        let state = match waits && !thread.woken.load(Ordering::Acquire) {
            _ if ended => "ended",
            true => "blocked",
            false => "ready",
        };
        let (ran_ns, account) = (thread.take_unreported_ns(), Arc::clone(&thread.session.account));
        Self { number: thread.id, account, state, ran_ns, own }
    }
}

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
            thread.place(priority);
        }
    }
    if !kernel.policies.notes.is_empty() {
        // Events that occurred while the policy was deciding are reported at the next tick.
        kernel.shares.keep_ticking();
    }
}
