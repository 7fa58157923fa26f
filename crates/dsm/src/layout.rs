//! What all nodes of a cluster agree on: pages, locks, managers.

use crate::region::Regions;

/// Which node keeps the log of a lock (Paper 3, §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// The lock's manager. A node that acquires the lock gets the updates that it has not seen. The
    /// paper's new scheme.
    LogAtManager,
    /// The last holder. A node that acquires the lock gets all updates. The paper's old scheme.
    LogAtLastHolder,
}

/// What all nodes agree on at the start.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Number of nodes.
    pub nodes: u16,
    /// The regions of shared memory, and the manager of each page.
    pub regions: Regions,
    /// Words per page.
    pub words_a_page: u32,
    /// Number of locks. Node L modulo `nodes` manages lock L until it is moved.
    pub locks: u32,
    /// Which node keeps the log of a lock.
    pub scheme: Scheme,
}
