//! Errors of the deep-binding evaluator.

use super::atoms;
use core::fmt;
use kyocho_heap::heap::OutOfMemory;
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Span;
use kyocho_syntax::symbol::Symbol;

/// Why a program stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The text cannot be read.
    Syntax(String),
    /// A malformed special form.
    Malformed(&'static str),
    /// A variable without a value.
    Unbound(Symbol),
    /// An argument of the wrong type.
    WrongType {
        /// The primitive.
        who: &'static str,
        /// The type that it requires.
        expected: &'static str,
        /// The argument, as text.
        got: String,
    },
    /// A call of something that is not a procedure.
    NotProcedure(String),
    /// Wrong number of arguments.
    Arity {
        /// The procedure, as text.
        who: String,
        /// The number of arguments.
        got: usize,
    },
    /// A result of more than 61 bits.
    Overflow(&'static str),
    /// Division by zero.
    DivideByZero(&'static str),
    /// The bound of the evaluator's stack is reached.
    TooDeep {
        /// The bound, in frames.
        frames_max: usize,
    },
    /// The heap's limit is reached.
    OutOfMemory,
    /// The program called `error`.
    Raised(String),
    /// The reader of the output has closed it.
    ClosedOutput,
    /// Output could not be written.
    Output(String),
    /// No microprocess could be started, or one ended unexpectedly.
    Runtime(String),
}

/// A cause, and the top-level form that was being evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// Where the form begins; line 0 if unknown.
    pub span: Span,
}

/// An error inside the evaluator. It is one pointer, so that results are returned in registers.
pub(super) type Stop = Box<Cause>;

/// Returns this cause as an error.
#[cold]
pub(super) fn stop<T>(cause: Cause) -> Result<T, Stop> {
    Err(Stop::from(cause))
}

impl From<OutOfMemory> for Stop {
    fn from(_: OutOfMemory) -> Self {
        Self::new(Cause::OutOfMemory)
    }
}

impl From<OutOfMemory> for Cause {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl Cause {
    #[cold]
    pub(super) fn wrong_type(who: &'static str, expected: &'static str, got: Value) -> Self {
        Self::WrongType { who, expected, got: atoms::show(got, true) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(message) | Self::Raised(message) => f.write_str(message),
            Self::Malformed(form) => write!(f, "malformed {form}"),
            Self::Unbound(name) => write!(f, "unbound variable: {name}"),
            Self::WrongType { who, expected, got } => {
                write!(f, "{who}: expected {expected}, got {got}")
            }
            Self::NotProcedure(what) => write!(f, "not a procedure: {what}"),
            Self::Arity { who, got } => write!(f, "{who}: wrong number of arguments: {got}"),
            Self::Overflow(who) => write!(f, "{who}: the result exceeds 61 bits"),
            Self::DivideByZero(who) => write!(f, "{who}: division by zero"),
            Self::TooDeep { frames_max } => {
                write!(f, "recursion too deep: more than {frames_max} frames")
            }
            Self::OutOfMemory => OutOfMemory.fmt(f),
            Self::ClosedOutput => f.write_str("the reader of the output has closed it"),
            Self::Output(reason) => write!(f, "cannot write output: {reason}"),
            Self::Runtime(reason) => f.write_str(reason),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.span.line, self.span.column, self.cause)
    }
}

impl core::error::Error for Failure {}
