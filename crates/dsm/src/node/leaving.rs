//! Nodes that have crossed their last barrier and left, while others have not. A call that needs
//! such a node fails, and the node that finds out tells all others.
//!
//! The last barrier of one node is the last of all. A program whose nodes cross different numbers
//! of barriers is wrong; it ends by an error instead of waiting. `Left` is a message of the epoch
//! after the barrier: a node that has not crossed the barrier keeps it until it has.

use std::collections::BTreeSet;

use super::{End, Loss, Node};
use crate::address::{LockId, NodeId, PageId};
use crate::interface::{Call, Subject};
use crate::message::Message;

impl Node {
    /// Announces that the program's next barrier is its last. After it the program uses no page and
    /// makes no call, and this node answers no messages.
    pub fn next_barrier_is_last(&mut self) {
        self.is_last = true;
        self.used.clear();
    }

    /// Ends the node after its last barrier, and tells the others, which may still need it.
    pub(super) fn leave_if_last(&mut self) {
        if !self.is_last {
            return;
        }
        self.ended = true;
        self.others().for_each(|other| self.send(other, Message::Left));
    }

    /// A peer has closed its connection with a goodbye. It counts as dead unless its program has
    /// ended properly.
    pub(super) fn said_goodbye(&mut self, peer: NodeId) {
        let is_early = self
            .early
            .iter()
            .chain(&self.begun)
            .any(|(from, message)| *from == peer && *message == Message::Left);
        if !is_early && !self.left.contains(&peer) {
            self.lose(Loss { peer, end: End::Dead });
        }
    }

    /// A peer's program has ended properly.
    pub(super) fn left(&mut self, peer: NodeId) {
        self.left.insert(peer);
        let held = self.locks.iter().filter(|(_, state)| state.is_held_by(peer));
        let held: Vec<LockId> = held.map(|(lock, _)| *lock).collect();
        for lock in held {
            self.managed(lock).abandon();
            self.serve(lock);
        }
        if self.crossed {
            let of_peer = |page: &PageId| self.page_manager(*page) == peer;
            let lost: BTreeSet<PageId> = self.ahead.iter().copied().filter(of_peer).collect();
            self.give_up_ahead(|page| lost.contains(&page));
            self.leave_barrier();
        }
        // At a barrier that is crossed, a thread waits only for pages.
        let mut waiting = self.waiting.values().filter(|_| !self.crossed);
        if waiting.any(|waiting| self.needed_by(waiting.call).is_some()) {
            self.lose(Loss { peer, end: End::Left });
        }
    }

    /// The program comes to no more barriers, because a peer has left. All threads that wait at a
    /// barrier, on any node, must learn that.
    pub(super) fn stranded(&mut self) {
        if let Some(peer) = self.needed(Subject::Barrier) {
            self.lose(Loss { peer, end: End::Left });
        }
    }

    /// The node that has left and that a call needs. A signal may have to come from any node.
    pub(super) fn needed_by(&self, call: Call) -> Option<NodeId> {
        let waits_for_signal = matches!(call, Call::WaitOn(..));
        self.needed(if waits_for_signal { Subject::Barrier } else { call.subject() })
    }

    /// The node that has left and that this needs.
    pub(super) fn needed(&self, subject: Subject) -> Option<NodeId> {
        let manager = match subject {
            Subject::Barrier => return self.left.first().copied(),
            Subject::Lock(lock) => self.lock_manager(lock),
            Subject::Page(page) => self.page_manager(page),
            Subject::Node(node) => node,
        };
        self.left.get(&manager).copied()
    }
}
