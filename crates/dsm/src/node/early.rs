//! Messages of the next epoch, which wait until this node begins it.
//!
//! Their number and their bytes are bounded for each peer. So a peer neither fills the memory nor
//! uses up what another peer may send.

use std::collections::{BTreeMap, VecDeque};

use crate::address::NodeId;
use crate::message::Message;
use crate::update::Update;

/// Messages of one peer that wait, at most. A peer that is ahead needs an answer to most of what it
/// sends; only signals and messages for a barrier need none.
const MESSAGES_MAX: usize = 1 << 16;
/// Bytes of one peer's waiting messages, at most, beside two updates per word of shared memory. The
/// two are what it wrote under locks that it held at the barrier, and what it wrote until the next
/// one.
const BYTES_MAX: usize = 1 << 24;

/// Number and bytes of the waiting messages of one peer.
#[derive(Debug, Default, Clone, Copy)]
struct Quota {
    messages: usize,
    bytes: usize,
}

/// The waiting messages, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Early {
    messages: VecDeque<(NodeId, Message)>,
    of_peers: BTreeMap<NodeId, Quota>,
}

impl Early {
    /// Whether a message of this peer may wait, if shared memory has so many words.
    pub(super) fn has_room(&self, from: NodeId, message: &Message, words: usize) -> bool {
        let Quota { messages, bytes } = self.of_peers.get(&from).copied().unwrap_or_default();
        let updates_bytes = words.saturating_mul(2 * size_of::<Update>());
        let bytes_max = updates_bytes.saturating_add(BYTES_MAX);
        messages < MESSAGES_MAX && message.bytes() <= bytes_max.saturating_sub(bytes)
    }

    /// Adds a message.
    pub(super) fn push(&mut self, from: NodeId, message: Message) {
        let waiting = self.of_peers.entry(from).or_default();
        waiting.messages += 1;
        waiting.bytes += message.bytes();
        self.messages.push_back((from, message));
    }

    /// Takes all messages.
    pub(super) fn take(&mut self) -> VecDeque<(NodeId, Message)> {
        self.of_peers.clear();
        core::mem::take(&mut self.messages)
    }

    /// All messages, with their senders.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(NodeId, Message)> {
        self.messages.iter()
    }
}
