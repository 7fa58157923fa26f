//! Nodes that have crossed their last barrier and left, while others have not: what needs them cannot be had, and who notices tells all.
//!
//! The last barrier of one is the last of all; a program whose nodes cross different numbers of them is wrong, and ends by an error instead of
//! a wait. `Left` is a message of the epoch behind the barrier: who has not crossed that yet keeps it until it has.

use std::collections::BTreeSet;

use super::{End, Loss, Node};
use crate::address::{LockId, NodeId, PageId};
use crate::interface::{Call, Subject};
use crate::message::Message;

impl Node {
    /// The program's next barrier is its last: behind it, it uses no page, makes no call, and this node answers nobody.
    pub fn next_barrier_is_last(&mut self) {
        self.is_last = true;
        self.used.clear();
    }

    /// Ends the node behind its last barrier, and tells the others: who needs it still is to know.
    pub(super) fn leave_if_last(&mut self) {
        if !self.is_last {
            return;
        }
        self.ended = true;
        self.others().for_each(|other| self.send(other, Message::Left));
    }

    /// A peer's connection ended in good order; so must its program have.
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

    /// A peer's program has ended well.
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
        // A barrier that is crossed is none: only pages are missing.
        let mut waiting = self.waiting.values().filter(|_| !self.crossed);
        if waiting.any(|waiting| self.needed_by(waiting.call).is_some()) {
            self.lose(Loss { peer, end: End::Left });
        }
    }

    /// The program comes to no barrier any more, as a peer has left: whoever waits for one of its threads, here or elsewhere, is to know.
    pub(super) fn stranded(&mut self) {
        if let Some(peer) = self.needed(Subject::Barrier) {
            self.lose(Loss { peer, end: End::Left });
        }
    }

    /// Who has left and is needed for a call. Who waits for a signal may wait for theirs.
    pub(super) fn needed_by(&self, call: Call) -> Option<NodeId> {
        let waits_for_signal = matches!(call, Call::WaitOn(..));
        self.needed(if waits_for_signal { Subject::Barrier } else { call.subject() })
    }

    /// Who has left and is needed for this.
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
