//! Exact arithmetic on integers and ratios of any length. It runs in slices, so a computation of
//! seconds can be interrupted.
//!
//! The reader needs it for number literals, without a heap; the Lisp Server needs it for its
//! numbers, with a heap. So every operation takes a [`Pause`], a function that it calls between two
//! slices. Short operands go to `num-bigint` and `num-rational` in one call.
//!
//! **Absent on purpose:** values of the heap, threads, clocks, unsafe code.

pub mod integer;
pub mod ratio;

/// Called between two slices of an operation. An error ends the operation and becomes its result.
pub type Pause<'a, E> = &'a mut dyn FnMut() -> Result<(), E>;
