//! Client processes as the host knows them: how to find them, to look into them, to signal and to end them.

pub(crate) mod client;
pub(crate) mod cpu;
pub(crate) mod tree;
