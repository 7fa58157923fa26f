//! Exact arithmetic on integers and ratios of any length, in parts: a computation of seconds can be interrupted.
//!
//! The reader of number literals needs it without a heap, the numbers of the Lisp Server with one.
//! So every operation takes a [`Pause`], a function that it calls between two parts.
//! Short operands are passed on to `num-bigint` and `num-rational` in one go.
//!
//! **Absent on purpose:** values of the heap, threads, clocks, unsafe code.

pub mod integer;
pub mod ratio;

/// What is done between two parts; an error ends the operation, and is its result.
pub type Pause<'a, E> = &'a mut dyn FnMut() -> Result<(), E>;
