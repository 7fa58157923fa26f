//! What a primitive gives instead of a value: the cause of an exception, in Rust data.
//!
//! The machine turns a cause into a condition object and calls the handlers. A `Raise` is one
//! pointer, so that a primitive's result travels in two registers.

use crate::value::Value;
use core::fmt;
use kyocho_syntax::datum::Span;
use kyocho_syntax::error::SyntaxError;

/// An exception on its way from a primitive to the machine.
#[derive(Debug)]
pub struct Raise(Box<Cause>);

/// The result of a primitive.
pub type Result<T = Value> = core::result::Result<T, Raise>;

/// Why a primitive raised. The machine makes a condition of each.
#[derive(Debug)]
pub enum Cause {
    /// An argument of the wrong type.
    WrongType {
        /// The procedure.
        who: &'static str,
        /// The argument's position, from 1.
        position: usize,
        /// What was expected, as a noun phrase: "pair", "exact integer".
        expected: &'static str,
        /// The argument.
        got: Value,
    },
    /// An argument of the right type with a value that cannot be served.
    OutOfRange {
        /// The procedure.
        who: &'static str,
        /// The argument's position, from 1.
        position: usize,
        /// The argument.
        got: Value,
        /// What it must keep to: "0 <= index < 3".
        bound: String,
    },
    /// Division by an exact zero.
    DivideByZero {
        /// The procedure.
        who: &'static str,
    },
    /// An error like those `(error message irritant ...)` raises.
    Error {
        /// What happened.
        message: String,
        /// The values concerned.
        irritants: Vec<Value>,
    },
    /// A file operation that the host refused: `file-error?` holds for it.
    File {
        /// The procedure.
        who: &'static str,
        /// The file.
        path: String,
        /// The host's reason.
        reason: String,
        /// The number of the host's error, where it is one.
        errno: Option<i32>,
        /// Whether it is standard output whose reader has gone.
        closed_output: bool,
    },
    /// Text that `read` cannot take: `read-error?` holds for it.
    Read {
        /// What is wrong and what was expected.
        message: String,
        /// Where in the text.
        span: Span,
    },
    /// A form that the expander cannot take.
    Syntax {
        /// What is wrong and what was expected.
        message: String,
        /// Where.
        span: Span,
    },
    /// The memory limit is reached.
    OutOfMemory,
    /// A request to the thread (to end, to stop for the prompt) cut a wait in the kernel short. The
    /// primitive has changed nothing; it is called again when the thread goes on.
    Interrupted,
    /// Any object, as `(raise object)` or `(raise-continuable object)` raises it.
    Object {
        /// What is raised.
        payload: Value,
        /// Whether the handler may return.
        continuable: bool,
    },
    /// `(exit)`: unwind, flush and end the program with this code.
    Exit(i32),
    /// `(emergency-exit)`: end the program with this code at once.
    EmergencyExit(i32),
}

impl Raise {
    /// A raise for this cause.
    #[cold]
    #[must_use]
    pub fn new(cause: Cause) -> Self {
        Self(Box::new(cause))
    }

    /// Argument `position` (from 1) of `who` is not what it must be.
    #[cold]
    #[must_use]
    pub fn wrong_type(
        who: &'static str,
        position: usize,
        expected: &'static str,
        got: Value,
    ) -> Self {
        Self::new(Cause::WrongType { who, position, expected, got })
    }

    /// Argument `position` (from 1) of `who` lies outside what it must keep to.
    #[cold]
    #[must_use]
    pub fn out_of_range(
        who: &'static str,
        position: usize,
        got: Value,
        bound: impl Into<String>,
    ) -> Self {
        Self::new(Cause::OutOfRange { who, position, got, bound: bound.into() })
    }

    /// Division by an exact zero in `who`.
    #[cold]
    #[must_use]
    pub fn divide_by_zero(who: &'static str) -> Self {
        Self::new(Cause::DivideByZero { who })
    }

    /// An error with a message and the values concerned.
    #[cold]
    #[must_use]
    pub fn error(message: impl Into<String>, irritants: Vec<Value>) -> Self {
        Self::new(Cause::Error { message: message.into(), irritants })
    }

    /// A syntax error, with its place.
    #[cold]
    #[must_use]
    pub fn syntax(error: SyntaxError) -> Self {
        Self::new(Cause::Syntax { message: error.explanation(), span: error.span() })
    }

    /// The memory limit is reached.
    #[cold]
    #[must_use]
    pub fn out_of_memory() -> Self {
        Self::new(Cause::OutOfMemory)
    }

    /// Whether the primitive is to be called again.
    pub fn is_interruption(&self) -> bool {
        matches!(*self.0, Cause::Interrupted)
    }

    /// Whether the heap gave no memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(*self.0, Cause::OutOfMemory)
    }

    /// Why it was raised.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0
    }

    /// Why it was raised, owned.
    #[must_use]
    pub fn into_cause(self) -> Cause {
        *self.0
    }
}

/// The heap's limit is reached; a collection may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory: the heap's limit is reached")
    }
}

impl core::error::Error for OutOfMemory {}

impl From<OutOfMemory> for Raise {
    fn from(_: OutOfMemory) -> Self {
        Self::out_of_memory()
    }
}
