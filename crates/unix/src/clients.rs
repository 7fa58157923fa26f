//! Client processes, as the host knows them: finding, reading, signalling and ending them.

pub(crate) mod client;
pub(crate) mod cpu;
pub(crate) mod tree;
