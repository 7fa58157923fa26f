//! What a mutator keeps for its thread: its dynamic environment, which is a root, and the system around it.
//!
//! The heap knows no threads. What it must ask of one (does anybody want it? who pays?) it asks of its [`Host`], which the Lisp Server
//! implements. A context without a host, as tests and tools have it, is wanted by nobody and pays nothing.

use crate::account::Account;
use crate::heap::pause::Until;
use crate::heap::{Marker, Mutator};
use crate::raise::Result;
use crate::value::Value;
use core::any::Any;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

/// Whose time it is that a thread spends outside of Lisp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Nobody's: it waits in the kernel.
    Waiting,
    /// The thread's: it computes.
    Computing,
}

/// The system that runs threads, as the heap sees it. `thread` is the context's.
pub trait Host: Any + fmt::Debug + Send + Sync {
    /// Whether somebody wants the thread to stand: a collection, the scheduler, whoever ends or interrupts it.
    fn is_wanted(&self, thread: Value) -> bool;

    /// Lets collections go by at a [pause](crate::heap::pause).
    ///
    /// # Errors
    /// The pause lasts no longer: `until` has come.
    fn stand(&self, context: &ThreadContext, until: Until) -> Result<()>;

    /// Runs `work`, which touches nothing of Lisp, while collections go by.
    fn outside(&self, context: &ThreadContext, time: Time, work: &mut dyn FnMut());

    /// Who pays for what the thread takes.
    fn account(&self, thread: Value) -> Option<Arc<Account>>;

    /// The thread, for what asks about it.
    fn caller(&self, _thread: Value) -> Option<Arc<dyn Caller>> {
        None
    }

    /// The condition that is raised where there is no memory to make one, if the system keeps one.
    fn out_of_memory(&self) -> Option<Value> {
        None
    }

    /// The machine calls the procedure of the system with this number.
    fn count_call(&self, _number: usize) {}
}

/// A thread of the host, as what it calls sees it. It may be asked while the thread is outside of Lisp.
pub trait Caller: Send + Sync {
    /// Whether somebody wants something of the thread: what waits in the kernel should give up.
    fn has_request(&self) -> bool;

    /// What the thread's session has around it, for procedures that know its type.
    fn session(&self) -> &(dyn Any + Send + Sync);
}

/// The address of the machine that has lent its mutator; none while it has not. Whoever has lent it knows what lies there.
#[derive(Debug, Default)]
pub struct Lender(usize);

impl Lender {
    /// This machine has lent its mutator.
    #[inline(always)]
    #[must_use]
    pub fn of<T>(machine: NonNull<T>) -> Self {
        Self(machine.as_ptr().expose_provenance())
    }

    /// The machine that has.
    #[must_use]
    pub fn machine<T>(&self) -> Option<NonNull<T>> {
        NonNull::new(core::ptr::with_exposed_provenance_mut(self.0))
    }
}

impl Clone for Lender {
    /// A copy of a context is nobody's yet.
    fn clone(&self) -> Self {
        Self::default()
    }
}

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
    pub held: Value,
    /// What a primitive needs after a [pause](crate::heap::pause); empty otherwise.
    pub(super) paused: Vec<Value>,
    /// What is needed after work with pauses, by who called it; the innermost last.
    pub(super) kept: Vec<Value>,
    /// For tests: what is called at each pause, instead of waiting.
    pub at_pause: Option<fn(&mut Mutator) -> Result<()>>,
    /// The machine that is in a call which may go outside, or pause.
    pub lender: Lender,
    /// The system, where there is one.
    pub host: Option<Arc<dyn Host>>,
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
            at_pause: None,
            lender: Lender::default(),
            host: None,
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

    /// What a thread of this system begins with: no handlers, nothing wound.
    #[must_use]
    pub fn of_thread(thread: Value, parameters: Value, host: Option<Arc<dyn Host>>) -> Self {
        Self { thread, parameters, host, ..Self::default() }
    }

    /// What a thread started here begins with: the same parameters.
    #[must_use]
    pub fn inherited(&self, thread: Value) -> Self {
        Self::of_thread(thread, self.parameters, self.host.clone())
    }

    /// Whether somebody wants the thread to stand.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.at_pause.is_some()
            || self.host.as_ref().is_some_and(|host| host.is_wanted(self.thread))
    }

    /// Who pays for what it takes.
    #[must_use]
    pub fn account(&self) -> Option<Arc<Account>> {
        self.host.as_ref()?.account(self.thread)
    }

    /// The thread, as its host knows it.
    #[must_use]
    pub fn caller(&self) -> Option<Arc<dyn Caller>> {
        self.host.as_ref()?.caller(self.thread)
    }

    /// Runs `work`, which touches nothing of Lisp, while collections go by.
    ///
    /// # Panics
    /// The host does not run it.
    pub fn outside<T>(&self, time: Time, work: impl FnOnce() -> T) -> T {
        let Some(host) = &self.host else { return work() };
        let (mut work, mut result) = (Some(work), None);
        host.outside(self, time, &mut || {
            if let Some(work) = work.take() {
                result = Some(work());
            }
        });
        result.expect("a host runs what it is given")
    }

    /// Marks what it keeps.
    pub fn trace(&self, marker: &mut Marker) {
        for value in [self.thread, self.winders, self.handlers, self.parameters, self.held] {
            marker.mark(value);
        }
        self.paused.iter().chain(&self.kept).for_each(|&value| marker.mark(value));
    }
}

impl Mutator {
    /// Runs `call`, which touches nothing of Lisp and may block in the kernel. Nothing that was got from this mutator stays but what its
    /// context and its machine keep.
    ///
    /// ```compile_fail,E0502
    /// # use kyocho_heap::{heap::Mutator, value::Value};
    /// fn second(m: &mut Mutator, list: Value) -> Option<Value> {
    ///     let rest = m.unrooted(list).cdr()?;
    ///     m.outside(|| ()); // a collection may go by
    ///     Some(rest.car()?.value())
    /// }
    /// ```
    ///
    /// Without the call in between it is right:
    ///
    /// ```
    /// # use kyocho_heap::{heap::Mutator, value::Value};
    /// fn second(m: &mut Mutator, list: Value) -> Option<Value> {
    ///     let rest = m.unrooted(list).cdr()?;
    ///     let second = rest.car()?.value();
    ///     Some(second)
    /// }
    /// ```
    pub fn outside<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.context.outside(Time::Waiting, call)
    }

    /// Does `work`, which touches nothing of Lisp, while collections go by; of its own only what is kept stays.
    pub fn apart<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.context.outside(Time::Computing, work)
    }
}
