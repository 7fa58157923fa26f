//! What a path of a client means: a walk through the mounts, and the two mounts that are synthetic,
//! `/proc` and `/dev`.

pub(crate) mod devices;
pub(crate) mod proc;
pub(crate) mod walk;
