//! The error of a primitive: the cause of an exception, as Rust data.
//!
//! The machine turns a cause into a condition object and calls the handlers. A `Raise` is one
//! pointer, so a primitive's result is returned in two registers.

use crate::value::Value;
use core::fmt;
use kyocho_syntax::datum::Span;
use kyocho_syntax::error::SyntaxError;

/// An exception that a primitive returns to the machine.
#[derive(Debug)]
pub struct Raise(Box<Cause>);

/// The result of a primitive.
pub type Result<T = Value> = core::result::Result<T, Raise>;

/// Why a primitive raised. The machine makes a condition from it.
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
    /// An argument of the right type whose value is not allowed.
    OutOfRange {
        /// The procedure.
        who: &'static str,
        /// The argument's position, from 1.
        position: usize,
        /// The argument.
        got: Value,
        /// The allowed range: "0 <= index < 3".
        bound: String,
    },
    /// Division by an exact zero, or of integers by any zero.
    DivideByZero {
        /// The procedure.
        who: &'static str,
    },
    /// An error as `(error message irritant ...)` raises it.
    Error {
        /// What happened.
        message: String,
        /// The values concerned.
        irritants: Vec<Value>,
    },
    /// A file operation that the host refused; satisfies `file-error?`.
    File {
        /// The procedure.
        who: &'static str,
        /// The file.
        path: String,
        /// The host's reason.
        reason: String,
        /// The host's error number, if there is one.
        errno: Option<i32>,
        /// Whether the file is standard output and its reader has closed it.
        closed_output: bool,
    },
    /// Text that `read` cannot read; satisfies `read-error?`.
    Read {
        /// What is wrong and what was expected.
        message: String,
        /// The position in the text.
        span: Span,
    },
    /// A form that the expander rejects.
    Syntax {
        /// What is wrong and what was expected.
        message: String,
        /// The position of the form.
        span: Span,
    },
    /// The memory limit is reached.
    OutOfMemory,
    /// A request to end the thread, or to stop it for the prompt, interrupted a wait in the kernel
    /// or long work at a pause. The primitive has changed nothing, and is called again if the
    /// thread continues.
    Interrupted,
    /// Any object, as raised by `(raise object)` or `(raise-continuable object)`.
    Object {
        /// The object.
        payload: Value,
        /// Whether the handler may return.
        continuable: bool,
    },
    /// `(exit)`: unwinds, flushes ports and ends the program with this code.
    Exit(i32),
    /// `(emergency-exit)`: ends the program with this code at once.
    EmergencyExit(i32),
}

impl Raise {
    /// A raise for this cause.
    #[cold]
    #[must_use]
    pub fn new(cause: Cause) -> Self {
        Self(Box::new(cause))
    }

    /// Argument `position` (from 1) of `who` has the wrong type.
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

    /// Argument `position` (from 1) of `who` is outside the allowed range.
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

    /// A syntax error with its position.
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

    /// Whether the cause is a lack of memory.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(*self.0, Cause::OutOfMemory)
    }

    /// The cause.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.0
    }

    /// The cause, by value.
    #[must_use]
    pub fn into_cause(self) -> Cause {
        *self.0
    }
}

/// The limit of the heap or of an account is reached; a collection may help.
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
