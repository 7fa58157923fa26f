//! Kernel threads beside the virtual processors, which notice what the kernel knows.

pub(crate) mod detect;
pub(crate) mod maker;
pub(crate) mod monitor;
pub(crate) mod outside;
pub(crate) mod sentinel;
