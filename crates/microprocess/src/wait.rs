//! Objects that microprocesses wait for.

pub mod bell;
pub mod channel;
pub(crate) mod interval;
pub mod select;
pub mod sync;
