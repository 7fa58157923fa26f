//! What a program may decide about scheduling.

pub(crate) mod concurrency;
pub(crate) mod configuration;
pub mod scheduler;
