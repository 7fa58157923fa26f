//! A write to shared memory, as it is sent between nodes.

use crate::address::Address;

/// A write of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update {
    /// The word.
    pub address: Address,
    /// The Lamport time of the interval in which it was written.
    pub time: u64,
    /// Its value.
    pub value: u32,
}
