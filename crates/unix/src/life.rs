//! The processes of an instance: how they start, watch each other and end.

pub(crate) mod belongings;
pub(crate) mod front;
pub(crate) mod news;
pub(crate) mod serve;
pub(crate) mod shared_memory;
pub(crate) mod start;
pub(crate) mod warden;
