//! The compiler: core forms to bytecode.
//!
//! ```text
//! Core --analysis--> facts --generator--> instructions --assembler--> Code --verify--> closure
//! ```
//!
//! It runs inside one primitive, and [pauses](kyocho_heap::heap::pause) at each form. The constants
//! and code objects that it has made are kept alive until it is done.

mod analysis;
pub(crate) mod assembler;
pub mod code;
mod generator;
pub mod inline;
pub mod instruction;
pub(crate) mod record;
mod verify;

use analysis::Analysis;
use code::Code;
use core::fmt;
use generator::Shared;
use inline::Builtins;
use kyocho_heap::heap::{Kind, Mutator, OutOfMemory};
use kyocho_heap::raise::Raise;
use kyocho_heap::value::Value;
use kyocho_syntax::core_form::Core;
use kyocho_syntax::datum::Span;
use kyocho_syntax::error::SyntaxError;
use kyocho_syntax::symbol::Symbol;
use std::collections::HashMap;
pub use verify::{Fault, verify};

/// Maximum number of variables that a closure can capture. A closure is allocated from its thread's
/// cell cache, which cannot hold large objects.
const CAPTURED_MAX: usize = 1000;

/// Maximum number of variables, arguments and intermediate values that a procedure can have at a
/// time.
const SLOTS_MAX: usize = 30_000;

/// Why a form cannot be compiled.
#[derive(Debug)]
#[non_exhaustive]
pub enum CompileError {
    /// The form is nested deeper than the compiler accepts.
    TooDeep,
    /// The procedure has more variables and intermediate values than a frame can hold.
    TooManySlots,
    /// The procedure uses more variables of enclosing procedures than a closure can hold.
    TooManyCaptured,
    /// The procedure is too long for its jumps.
    TooFar,
    /// Not an error: the procedure is compiled again, with room reserved.
    NeedsReserve,
    /// A variable without a binding: the expander broke its contract.
    Unplaced(Symbol),
    /// Code that must not be passed to the machine: the generator broke its contract.
    Faulty(Fault),
    /// The heap is full, or the thread must end.
    Raised(Raise),
}

impl From<Raise> for CompileError {
    fn from(raise: Raise) -> Self {
        Self::Raised(raise)
    }
}

impl From<Fault> for CompileError {
    fn from(fault: Fault) -> Self {
        Self::Faulty(fault)
    }
}

impl From<OutOfMemory> for CompileError {
    fn from(error: OutOfMemory) -> Self {
        Self::Raised(error.into())
    }
}

impl CompileError {
    /// The exception that `eval` raises for this error in a form at `span`.
    pub fn into_raise(self, span: Span) -> Raise {
        match self {
            Self::Raised(raise) => raise,
            other => Raise::syntax(SyntaxError::new(span, other.to_string())),
        }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooDeep => f.write_str("this form is nested too deeply to compile"),
            Self::TooManySlots => write!(
                f,
                "this procedure has too many variables or arguments to compile: more than {SLOTS_MAX} at a \
                 time"
            ),
            Self::TooManyCaptured => write!(
                f,
                "this procedure uses more than {CAPTURED_MAX} variables of the procedures around it"
            ),
            Self::TooFar | Self::NeedsReserve => f.write_str("this procedure is too long"),
            Self::Unplaced(name) => write!(f, "variable {name} has no binding"),
            Self::Faulty(fault) => {
                write!(
                    f,
                    "internal error of the compiler at instruction word {}: {}",
                    fault.at, fault.what
                )
            }
            Self::Raised(_) => f.write_str("the compiler was interrupted"),
        }
    }
}

/// Compiles a top-level form into a procedure without arguments. Keeps everything that it makes
/// alive.
///
/// # Errors
/// The form exceeds a bound of the compiler, or the heap is full. Also the errors of
/// [`Mutator::pause`].
pub fn compile(
    mutator: &mut Mutator,
    builtins: &Builtins,
    core: &Core,
) -> Result<Value, CompileError> {
    let analysis =
        mutator.compute_outside(|| Analysis::of(core)).map_err(|_| CompileError::TooDeep)?;
    let mut shared = Shared { mutator, builtins, analysis: &analysis, constants: HashMap::new() };
    let code = generator::generate_top(&mut shared, core);
    mutator.compute_outside(|| drop(analysis));
    let code = code?;
    let entry = code.as_foreign::<Code>().map_or(0, |code| code.address_of(code.entries[0].at));
    let closure = mutator.object(Kind::Closure, 0, 2)?;
    closure.set_payload_word(0, code.to_word());
    closure.set_payload_word(1, entry);
    Ok(mutator.keep(closure))
}

/// Makes a heap object for the code if the verifier accepts it.
///
/// # Errors
/// The code is [faulty](CompileError::Faulty), or the heap is full.
pub fn make_code(mutator: &mut Mutator, code: Code) -> Result<Value, CompileError> {
    verify(&code)?;
    Ok(mutator.foreign(Box::new(code))?)
}
