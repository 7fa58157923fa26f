//! The processes of an instance: their start, how they watch each other, and their end.

pub(crate) mod front;
pub(crate) mod host_resources;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod shared_memory;
pub(crate) mod start;
pub(crate) mod warden;
