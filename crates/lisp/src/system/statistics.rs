//! Counters of system calls by transport: by message, from a cache, or in the caller's own step
//! (paper 4, §3.1.1 and §5).
//!
//! There is a set of counters for each CPU. Counting costs some nanoseconds, and moves no cache
//! line between threads.

use crate::thread::wait::OnThread;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use kyocho_tst::{PerCpu, TestAndSet};
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

/// What is counted besides control procedures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counted {
    /// Requests for cells. The system-call thread determines whether they are served by message or
    /// by the caller.
    Refills,
    /// Cells received. Each one except the first of a refill comes from a cache.
    Cells,
    /// Raw calls of the host, outside Lisp.
    Host,
}

const COUNTED: usize = 3;

/// The counters of one system.
#[derive(Debug)]
pub(crate) struct Calls {
    counts: PerCpu<Box<[AtomicUsize]>>,
    /// How many policies and tools need the running time of every thread.
    measures: AtomicUsize,
}

impl Default for Calls {
    fn default() -> Self {
        let numbers = COUNTED + control::procedures().count();
        let piece = || (0..numbers).map(|_| AtomicUsize::new(0)).collect();
        Self { counts: PerCpu::new(piece), measures: AtomicUsize::new(0) }
    }
}

impl Calls {
    fn add(&self, number: usize, count: usize) {
        self.counts.with(|method, counts| method.fetch_add(&counts[number], count));
    }

    /// Adds to a counter.
    pub(crate) fn count(&self, what: Counted, count: usize) {
        self.add(what as usize, count);
    }

    /// Counts a call of a control procedure.
    pub(crate) fn count_procedure(&self, number: usize) {
        self.add(COUNTED + number, 1);
    }

    fn sum(&self, number: usize) -> usize {
        self.counts
            .iter()
            .fold(0, |sum, counts| sum.wrapping_add(counts[number].load(Ordering::Relaxed)))
    }

    /// Adds or removes a user of the running times.
    pub(crate) fn measure(&self, more: bool) {
        if more {
            self.measures.fetch_add(1, Ordering::Relaxed);
        } else {
            self.measures.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether the running time of each thread is needed.
    pub(crate) fn are_measured(&self) -> bool {
        self.measures.load(Ordering::Relaxed) > 0
    }
}

/// `(%system-calls)`: vectors of name, transport, count.
fn system_calls(machine: &mut Machine, _: Frame, _: usize) -> Result<Control> {
    let kernel = machine.kernel()?;
    let carried = kernel.system_call.is_carried_by_caller();
    let refills = if carried { "caller" } else { "message" };
    let of = |what: Counted| kernel.calls.sum(what as usize);
    let (asked, cells) = (of(Counted::Refills), of(Counted::Cells));
    let mut rows = vec![
        ("cons", refills, asked),
        ("cons", "cache", cells.saturating_sub(asked)),
        ("collection", "message", kernel.heap.statistics().collections as usize),
        ("host", "outside", of(Counted::Host)),
    ];
    for (number, name) in control::system_calls() {
        rows.push((name, "step", kernel.calls.sum(COUNTED + number)));
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
