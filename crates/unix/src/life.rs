//! The processes of an instance: their start, how they watch each other, and their end.

pub(crate) mod belongings;
pub(crate) mod front;
pub(crate) mod news;
pub(crate) mod serve;
pub(crate) mod shared_memory;
pub(crate) mod start;
pub(crate) mod warden;
