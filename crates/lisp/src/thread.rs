//! A Lisp thread's state that allocation and primitives see.

use crate::value::Value;

/// What the machine keeps for the running thread.
#[derive(Debug)]
pub struct ThreadContext {
    /// The thread object.
    pub thread: Value,
}

impl Default for ThreadContext {
    fn default() -> Self {
        Self { thread: Value::FALSE }
    }
}
