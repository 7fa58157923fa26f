//! Plain data and the rules for it: no threads, no host.

pub(crate) mod deadline;
pub(crate) mod detection;
pub(crate) mod heap;
pub(crate) mod killed;
pub(crate) mod link;
pub(crate) mod priority;
pub(crate) mod run_queue;
pub(crate) mod slice;
pub(crate) mod stackless;
pub(crate) mod statistics;
pub(crate) mod view;
