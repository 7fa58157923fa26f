//! What a server keeps for its instance. The parts do not depend on calls.

pub(crate) mod addresses;
pub(crate) mod admission;
pub(crate) mod filesystems;
pub(crate) mod memory_files;
pub(crate) mod mounts;
pub(crate) mod objects;
pub(crate) mod trace;
