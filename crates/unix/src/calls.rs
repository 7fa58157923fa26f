//! The served system calls, a file for each concern. `dispatch` maps numbers to functions.

pub(crate) mod attributes;
pub(crate) mod directories;
pub(crate) mod dispatch;
pub(crate) mod exec;
pub(crate) mod extended;
pub(crate) mod files;
pub(crate) mod freebsd;
pub(crate) mod memory_files;
pub(crate) mod messages;
pub(crate) mod naming;
pub(crate) mod objects;
pub(crate) mod processes;
pub(crate) mod sites;
pub(crate) mod socket_names;
pub(crate) mod sockets;
pub(crate) mod traced;
pub(crate) mod watches;
