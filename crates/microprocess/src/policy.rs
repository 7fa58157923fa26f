//! What a program may decide about scheduling: user schedulers, and how many virtual processors
//! run.

pub(crate) mod concurrency;
pub(crate) mod configuration;
pub mod scheduler;
