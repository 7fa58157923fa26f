//! Plain data and its rules. Nothing here knows threads or the host.

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
