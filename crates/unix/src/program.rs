//! Programs: what their files say, and how they come into a client's address space.

pub(crate) mod elf;
pub(crate) mod launcher;
pub(crate) mod loading;
pub(crate) mod plan;
pub(crate) mod running;
pub(crate) mod sites;
