//! The Lisp Server as a whole.
pub(crate) mod control;
pub(crate) mod kernel;
