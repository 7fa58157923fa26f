//! Lisp threads: stackless microprocesses that step a machine.
//!
//! ```text
//! spawn --> Runner::step --> Machine::run --> Exit --> Step --> .. (park, wake) .. --> Done
//! ```
//!
//! **Invariant:** a thread's machine is touched by the kernel thread that runs its step, between
//! `Threads::enter` and `leave`, or by the collector while the world is stopped; by nobody else. Of one whose step is outside, the collector
//! touches what the step has handed over (`machine/outside.rs`).
//! **Lock order:** a channel (several by their addresses), mutex or condition variable; then a
//! thread's `inner`; then the registry. None is held across a safepoint.

pub(crate) mod channel;
pub(crate) mod condvar;
pub(crate) mod control;
pub(crate) mod lisp_thread;
pub(crate) mod mutex;
pub(crate) mod outside;
pub(crate) mod pause;
pub(crate) mod runner;
pub(crate) mod safepoint;
pub(crate) mod select;
pub(crate) mod ticket;
pub(crate) mod wait;

use crate::account::Account;
use crate::heap::Marker;
use crate::machine::control::Procedure;
use crate::machine::outside::Lender;
use crate::system::kernel::Kernel;
use crate::system::lisp_session::LispSession;
use crate::thread::lisp_thread::{LispThread, ThreadObject};
use crate::value::Value;
#[cfg(test)]
use crate::{heap::Mutator, raise::Result};
use kyocho_microprocess::Microprocess;
use std::sync::Arc;

/// Control procedures of threads, mutexes, condition variables and channels.
pub(crate) const TABLES: [&[Procedure]; 5] =
    [control::TABLE, mutex::TABLE, condvar::TABLE, channel::TABLE, select::TABLE];

/// What the machine keeps for the running thread: its dynamic environment.
#[derive(Clone, Debug)]
pub struct ThreadContext {
    /// The thread object.
    pub thread: Value,
    /// What `dynamic-wind` has entered and not left: a list of `(before . after)`, innermost first.
    pub winders: Value,
    /// The exception handlers: a list, innermost first.
    pub handlers: Value,
    /// What `parameterize` has bound: a list of `(parameter . value)`, innermost first.
    pub parameters: Value,
    /// What a primitive has made already and needs after it was outside: collections go on meanwhile.
    pub(crate) held: Value,
    /// What a primitive needs after a [pause](pause); empty otherwise.
    pub(crate) paused: Vec<Value>,
    /// What is needed after work with pauses, by who called it; the innermost last.
    pub(crate) kept: Vec<Value>,
    /// What is called at each pause.
    #[cfg(test)]
    pub(crate) at_pause: Option<fn(&mut Mutator) -> Result<()>>,
    /// The machine that is in a call which may go outside, or pause.
    pub(crate) lender: Lender,
    /// The system, where there is one: primitives run without in tests.
    pub(crate) kernel: Option<Arc<Kernel>>,
}

impl Default for ThreadContext {
    fn default() -> Self {
        Self {
            thread: Value::FALSE,
            winders: Value::NIL,
            handlers: Value::NIL,
            parameters: Value::NIL,
            held: Value::FALSE,
            paused: Vec::new(),
            kept: Vec::new(),
            #[cfg(test)]
            at_pause: None,
            lender: Lender::default(),
            kernel: None,
        }
    }
}

impl ThreadContext {
    /// The value of a parameter object here.
    #[must_use]
    pub fn parameter(&self, parameter: Value) -> Value {
        let mut bindings = self.parameters;
        while let Some((binding, rest)) = bindings.uncons() {
            if binding.car() == Some(parameter) {
                return binding.cdr().unwrap_or(Value::UNSPECIFIED);
            }
            bindings = rest;
        }
        parameter.field(0).unwrap_or(Value::UNSPECIFIED)
    }

    /// What a thread started here begins with: the same parameters, no handlers, nothing wound.
    #[must_use]
    pub fn inherited(&self) -> Self {
        Self { parameters: self.parameters, kernel: self.kernel.clone(), ..Self::default() }
    }

    fn lisp_thread(&self) -> Option<&Arc<LispThread>> {
        self.thread.as_foreign::<ThreadObject>().map(|object| &object.0)
    }

    /// Whether somebody wants the thread to stand: a collection, the scheduler, whoever ends or interrupts it.
    #[inline]
    fn is_wanted(&self) -> bool {
        #[cfg(test)]
        if self.at_pause.is_some() {
            return true;
        }
        let microprocess = self.lisp_thread().and_then(|thread| thread.microprocess.get());
        microprocess.is_some_and(Microprocess::is_wanted)
    }

    /// Whose thread it is.
    pub(crate) fn session(&self) -> Option<&Arc<LispSession>> {
        self.lisp_thread().map(|thread| &thread.session)
    }

    /// Who pays for what it takes.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        self.session().map(|session| Arc::clone(&session.account))
    }

    /// Whether somebody wants something of the thread: what waits in the kernel should give up.
    #[must_use]
    pub fn has_request(&self) -> bool {
        self.lisp_thread().is_some_and(|thread| thread.has_request())
    }

    /// The same to ask while the thread is outside.
    pub(crate) fn wish(&self) -> impl Fn() -> bool + use<> {
        let thread = self.lisp_thread().cloned();
        move || thread.as_ref().is_some_and(|thread| thread.has_request())
    }

    pub(crate) fn trace(&self, marker: &mut Marker) {
        for value in [self.thread, self.winders, self.handlers, self.parameters, self.held] {
            marker.mark(value);
        }
        self.paused.iter().chain(&self.kept).for_each(|&value| marker.mark(value));
    }
}
