//! Who notices what the kernel knows: kernel threads beside the virtual processors.

pub(crate) mod detect;
pub(crate) mod maker;
pub(crate) mod monitor;
pub(crate) mod outside;
pub(crate) mod sentinel;
