//! Names of nodes, threads, pages, words, locks and condition variables.

/// A node: a virtual process, by its rank.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct NodeId(pub u16);

/// A page of shared memory, by its number in the shared space of 64 bits; below 2^52.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct PageId(pub u64);

/// A lock, by its number.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct LockId(pub u32);

/// A thread of a node's program, by its number on that node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct ThreadId(pub u16);

impl ThreadId {
    /// The thread that a node starts with.
    pub const FIRST: Self = Self(0);
}

/// A condition variable of a lock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct ConditionId(pub u32);

/// A word of shared memory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Address {
    /// The page.
    pub page: PageId,
    /// The word in it.
    pub word: u32,
}
