//! What a path of a client means: a walk through the mounts, and the two that the server makes up, `/proc` and `/dev`.

pub(crate) mod devices;
pub(crate) mod proc;
pub(crate) mod walk;
