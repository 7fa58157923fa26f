//! Microprocesses: how they are created, named and joined, and their local values.

pub(crate) mod dispatch;
pub(crate) mod global_id;
pub(crate) mod local;
pub(crate) mod microprocess;
pub(crate) mod orders;
pub(crate) mod scope;
pub(crate) mod spawn;
