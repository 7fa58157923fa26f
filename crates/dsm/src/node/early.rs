//! Messages of the epoch that this node has not begun: they wait until it has.
//!
//! Each peer may have so many waiting, and so many bytes of them: what one peer sends neither fills
//! the memory nor makes another peer break a bound.

use std::collections::{BTreeMap, VecDeque};

use crate::address::NodeId;
use crate::message::Message;
use crate::update::Update;

/// Messages of one peer that wait, at most. A peer that is ahead waits for an answer after most of
/// what it sends; only signals and what a barrier brings come without.
const MESSAGES_MAX: usize = 1 << 16;
/// Bytes of one peer's messages that wait, at most, beside those of two updates of each word of
/// shared memory: what it wrote under locks that it held at the barrier, and what it wrote until the
/// next one.
const BYTES_MAX: usize = 1 << 24;

/// The messages of one peer, counted.
#[derive(Debug, Default, Clone, Copy)]
struct Waiting {
    messages: usize,
    bytes: usize,
}

/// The messages that wait, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Early {
    messages: VecDeque<(NodeId, Message)>,
    of_peers: BTreeMap<NodeId, Waiting>,
}

impl Early {
    /// Whether a message of this peer may wait as well, where shared memory has so many words.
    pub(super) fn has_room(&self, from: NodeId, message: &Message, words: usize) -> bool {
        let Waiting { messages, bytes } = self.of_peers.get(&from).copied().unwrap_or_default();
        let updates_bytes = words.saturating_mul(2 * size_of::<Update>());
        let bytes_max = updates_bytes.saturating_add(BYTES_MAX);
        messages < MESSAGES_MAX && message.bytes() <= bytes_max.saturating_sub(bytes)
    }

    /// Keeps a message.
    pub(super) fn push(&mut self, from: NodeId, message: Message) {
        let waiting = self.of_peers.entry(from).or_default();
        waiting.messages += 1;
        waiting.bytes += message.bytes();
        self.messages.push_back((from, message));
    }

    /// All messages that wait; none do afterwards.
    pub(super) fn take(&mut self) -> VecDeque<(NodeId, Message)> {
        self.of_peers.clear();
        core::mem::take(&mut self.messages)
    }

    /// The messages that wait, with their senders.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(NodeId, Message)> {
        self.messages.iter()
    }
}
