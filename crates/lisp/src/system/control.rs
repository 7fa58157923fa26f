//! Procedures that reach the system.
use crate::machine::control::Procedure;
pub(crate) const TABLE: &[Procedure] = &[];
