//! A Lisp thread's state that allocation and primitives see.

pub(crate) mod control;

use crate::heap::Marker;
use crate::value::Value;

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
}

impl Default for ThreadContext {
    fn default() -> Self {
        Self {
            thread: Value::FALSE,
            winders: Value::NIL,
            handlers: Value::NIL,
            parameters: Value::NIL,
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
        Self { parameters: self.parameters, ..Self::default() }
    }

    pub(crate) fn trace(&self, marker: &mut Marker<'_>) {
        for value in [self.thread, self.winders, self.handlers, self.parameters] {
            marker.mark(value);
        }
    }
}
