//! Threads, from Lisp.
use crate::machine::control::Procedure;
pub(crate) const TABLE: &[Procedure] = &[];
