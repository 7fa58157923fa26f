//! What all nodes of a cluster agree on: pages, locks, managers.

use crate::region::Regions;

/// Who keeps what was written under a lock (Paper 3, §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// The lock's manager: who acquires gets what it has not seen. The paper's new scheme.
    LogAtManager,
    /// The last holder: who acquires gets all of it. The paper's old scheme.
    LogAtLastHolder,
}

/// What all nodes agree on at the start.
#[derive(Debug, Clone)]
pub struct Layout {
    /// How many nodes.
    pub nodes: u16,
    /// Where shared memory lies in its space, and the manager of each page.
    pub regions: Regions,
    /// Words of a page.
    pub words_a_page: u32,
    /// How many locks; lock L is managed by node L modulo `nodes` until it is moved.
    pub locks: u32,
    /// Who keeps what was written under locks.
    pub scheme: Scheme,
}
