//! A write to shared memory, as nodes tell each other of it.

use crate::address::Address;

/// A write: the value of a word, and when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Update {
    /// The word.
    pub address: Address,
    /// The Lamport time of the interval in which it was written.
    pub time: u64,
    /// Its value.
    pub value: u32,
}
