//! The part of a mutator that belongs to its thread: the dynamic environment, which is a root, and
//! the interface to the system around it.
//!
//! The heap has no notion of threads. It queries a thread's state (must it stop? which account
//! pays?) through its [`Host`], which the Lisp Server implements. Tests and tools use contexts
//! without a host. Such a context is never asked to stop, and has no account.

use crate::account::Account;
use crate::heap::pause::Until;
use crate::heap::{Marker, Mutator};
use crate::raise::Result;
use crate::value::Value;
use core::any::Any;
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

/// How the time that a thread spends outside Lisp is accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Not charged: it waits in the kernel.
    Waiting,
    /// Charged to the thread: it computes.
    Computing,
}

/// The system that runs threads, as the heap sees it. `thread` is the thread of the context.
pub trait Host: Any + fmt::Debug + Send + Sync {
    /// Whether the thread must stop at a safepoint: for a collection, for the scheduler, or to be
    /// ended or interrupted.
    fn is_wanted(&self, thread: Value) -> bool;

    /// Lets collections run at a [pause](crate::heap::pause).
    ///
    /// # Errors
    /// The thread has a request that `until` includes, so the work ends.
    fn let_collections_run(&self, context: &ThreadContext, until: Until) -> Result<()>;

    /// Runs `work`, which accesses nothing of Lisp, while collections may run.
    fn outside(&self, context: &ThreadContext, time: Time, work: &mut dyn FnMut());

    /// The account that pays for the thread's memory.
    fn account(&self, thread: Value) -> Option<Arc<Account>>;

    /// The interface to the thread. `None` if the host does not run it.
    fn caller(&self, _thread: Value) -> Option<Arc<dyn Caller>> {
        None
    }

    /// The condition that is raised if there is no memory to make one. `None` if the system keeps
    /// none.
    fn out_of_memory(&self) -> Option<Value> {
        None
    }

    /// Counts a call of the control procedure with this number.
    fn count_call(&self, _number: usize) {}
}

/// A thread of the host, as the procedures that it calls see it. The methods may also be called
/// while the thread is outside Lisp.
pub trait Caller: Send + Sync {
    /// Whether there is a request for the thread. A wait in the kernel then gives up.
    fn has_request(&self) -> bool;

    /// The surroundings of the thread's session, for procedures that know their type.
    fn session(&self) -> &(dyn Any + Send + Sync);
}

/// The address of the machine that has lent its mutator, if one has. Only the lending machine may
/// interpret it.
#[derive(Debug, Default)]
pub struct Lender(usize);

impl Lender {
    /// Marks the mutator as lent by this machine.
    #[inline(always)]
    #[must_use]
    pub fn of<T>(machine: NonNull<T>) -> Self {
        Self(machine.as_ptr().expose_provenance())
    }

    /// The lending machine, if any.
    #[must_use]
    pub fn machine<T>(&self) -> Option<NonNull<T>> {
        NonNull::new(core::ptr::with_exposed_provenance_mut(self.0))
    }
}

impl Clone for Lender {
    /// A copy of a context is not lent.
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The dynamic environment of the running thread.
#[derive(Clone, Debug)]
pub struct ThreadContext {
    /// The thread object.
    pub thread: Value,
    /// The `dynamic-wind` entries in effect: a list of `(before after handlers . parameters)`,
    /// innermost first.
    pub winders: Value,
    /// The exception handlers: a list, innermost first.
    pub handlers: Value,
    /// The bindings of `parameterize`: a list of `(parameter . value)`, innermost first.
    pub parameters: Value,
    /// A value that a primitive has made and needs after a call outside Lisp, during which
    /// collections may run.
    pub held: Value,
    /// Values that a primitive needs after a [pause](crate::heap::pause); otherwise empty.
    pub(super) paused: Vec<Value>,
    /// Values that callers need after work with pauses; the innermost caller's last.
    pub(super) kept: Vec<Value>,
    /// For tests: called at each pause instead of waiting.
    pub at_pause: Option<fn(&mut Mutator) -> Result<()>>,
    /// The machine whose current call may go outside Lisp, or pause.
    pub lender: Lender,
    /// The system, if there is one.
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
    /// The value of a parameter object in this environment.
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

    /// The initial environment of a thread: no handlers, no `dynamic-wind` entries.
    #[must_use]
    pub fn of_thread(thread: Value, parameters: Value, host: Option<Arc<dyn Host>>) -> Self {
        Self { thread, parameters, host, ..Self::default() }
    }

    /// The initial environment of a thread started from here: it inherits the parameters.
    #[must_use]
    pub fn inherited(&self, thread: Value) -> Self {
        Self::of_thread(thread, self.parameters, self.host.clone())
    }

    /// Whether the thread must stop at a safepoint.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.at_pause.is_some()
            || self.host.as_ref().is_some_and(|host| host.is_wanted(self.thread))
    }

    /// The account that pays for the thread's memory.
    #[must_use]
    pub fn account(&self) -> Option<Arc<Account>> {
        self.host.as_ref()?.account(self.thread)
    }

    /// The thread, as its host knows it.
    #[must_use]
    pub fn caller(&self) -> Option<Arc<dyn Caller>> {
        self.host.as_ref()?.caller(self.thread)
    }

    /// Runs `work`, which accesses nothing of Lisp, while collections may run.
    ///
    /// # Panics
    /// If the host does not run `work`.
    pub fn outside<T>(&self, time: Time, work: impl FnOnce() -> T) -> T {
        let Some(host) = &self.host else { return work() };
        let (mut work, mut result) = (Some(work), None);
        host.outside(self, time, &mut || {
            if let Some(work) = work.take() {
                result = Some(work());
            }
        });
        result.expect("a host runs the work")
    }

    /// Marks the values in this environment.
    pub fn trace(&self, marker: &mut Marker) {
        for value in [self.thread, self.winders, self.handlers, self.parameters, self.held] {
            marker.mark(value);
        }
        self.paused.iter().chain(&self.kept).for_each(|&value| marker.mark(value));
    }
}

impl Mutator {
    /// Runs `call`, which accesses nothing of Lisp and may block in the kernel. Afterwards only
    /// values kept by the context and the machine are valid.
    ///
    /// ```compile_fail,E0502
    /// # use kyocho_heap::{heap::Mutator, value::Value};
    /// fn second(m: &mut Mutator, list: Value) -> Option<Value> {
    ///     let rest = m.unrooted(list).cdr()?;
    ///     m.outside(|| ()); // a collection may run here
    ///     Some(rest.car()?.value())
    /// }
    /// ```
    ///
    /// Without the call in between it compiles:
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

    /// Runs `work`, which accesses nothing of Lisp and computes, while collections may run.
    /// Afterwards only kept values are valid.
    pub fn compute_outside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.context.outside(Time::Computing, work)
    }
}
