//! Which messages are valid from which sender, and when. Any other message violates the protocol,
//! and changes nothing.
//!
//! Here the assumptions are checked that the handlers in `manager.rs` make. Malformed bytes, and
//! names that the layout does not have, are rejected earlier ([`crate::wire`]).

use std::collections::{BTreeSet, VecDeque};

use super::{BARRIER_MANAGER, Granted, Node};
use crate::address::{LockId, NodeId, PageId, ThreadId};
use crate::interface::Call;
use crate::layout::Scheme;
use crate::lock::{Lock, Mode};
use crate::message::{Message, Move};
use crate::update::Update;

impl Node {
    /// Whether `from` can have sent this message, in an epoch that is not over.
    pub(super) fn is_due(&self, from: NodeId, epoch: u64, message: &Message) -> bool {
        match message {
            // A node that takes this node for dead tells all the others.
            Message::Lost(peer) => *peer != self.me,
            // No node can be two barriers ahead of one that has not crossed the first.
            _ if epoch > self.epoch => epoch == self.epoch + 1 && self.has_room(from, message),
            _ => self.is_due_now(from, message),
        }
    }

    fn has_room(&self, from: NodeId, message: &Message) -> bool {
        let words = self.layout.regions.pages().saturating_mul(self.layout.words_a_page as usize);
        self.early.has_room(from, message, words)
    }

    fn is_due_now(&self, from: NodeId, message: &Message) -> bool {
        match message {
            Message::Acquire { lock, thread, .. } => {
                let known = self.locks.get(lock).is_some_and(|state| state.knows(from, *thread));
                self.manages(*lock) && !known
            }
            Message::Cancel(lock, _) | Message::Awaken(lock, _) | Message::Signal { lock, .. } => {
                self.manages(*lock)
            }
            Message::Busy(lock, thread) => {
                self.lacks(*lock, *thread).is_some() && from == self.lock_manager(*lock)
            }
            Message::Grant { lock, thread, mode, .. } => {
                self.lacks(*lock, *thread) == Some(*mode) && self.may_grant(from, *lock, *thread)
            }
            Message::HandOn { lock, .. } => {
                self.layout.scheme == Scheme::LogAtLastHolder && from == self.lock_manager(*lock)
            }
            Message::Release { lock, then_wait, .. } => {
                let waits = |state: &Lock| {
                    then_wait.is_some_and(|(_, thread)| state.is_awaited_by(from, thread))
                };
                let state = self.locks.get(lock);
                state.is_some_and(|state| state.is_held_by(from) && !waits(state))
            }
            Message::Flush(updates) => {
                !self.flushed.contains_key(&from) && self.manages_all(updates)
            }
            Message::Arrive { held, .. } => {
                let is_first = self.me == BARRIER_MANAGER && !self.gathering.has(from);
                is_first && each_once(held) && held.iter().all(|lock| self.may_hold(from, *lock))
            }
            Message::Region(..) => {
                let is_first = !self.gathering.has(from) && !self.gathering.makes(from);
                self.me == BARRIER_MANAGER && is_first
            }
            Message::Go { held, moves, .. } => {
                let is_well_formed = each_moves_once(moves) && self.is_what_is_held(held);
                self.may_end(from) && is_well_formed && !self.lacks_refusal()
            }
            Message::Refuse(_) => self.may_end(from) && self.refused.is_none(),
            Message::Master(page, _) => self.is_before_barrier() && self.is_manager(from, *page),
            Message::Fetch(page, _) => self.memory.master(*page).is_some(),
            Message::Page(page, _) => {
                let wants = self.waiting.values().any(|waiting| waiting.call == Call::Fetch(*page));
                (wants || self.ahead.contains(page)) && self.is_manager(from, *page)
            }
            Message::Left => !self.left.contains(&from),
            Message::Lost(peer) | Message::Stranded(peer) => *peer != self.me,
        }
    }

    fn manages(&self, lock: LockId) -> bool {
        self.lock_manager(lock) == self.me
    }

    /// Whether a node can hold this lock exclusively, as far as this node knows. If this node
    /// manages the lock, it has granted it; a release would have arrived before the claim.
    pub(super) fn may_hold(&self, node: NodeId, lock: LockId) -> bool {
        let held = || self.locks.get(&lock).is_some_and(|state| state.is_held_by(node));
        !self.manages(lock) || held()
    }

    /// Whether the locks that these claims attribute to this node are those that it holds
    /// exclusively.
    fn is_what_is_held(&self, held: &[(LockId, NodeId)]) -> bool {
        let said = held.iter().filter(|(_, node)| *node == self.me).map(|(lock, _)| *lock);
        let said: Vec<_> = said.collect();
        each_once(&said) && said.iter().copied().collect::<BTreeSet<_>>() == self.exclusive()
    }

    /// Whether this node can grant the lock: its manager, or its last holder once the manager has
    /// granted it.
    fn may_grant(&self, from: NodeId, lock: LockId, thread: ThreadId) -> bool {
        match self.layout.scheme {
            Scheme::LogAtManager => from == self.lock_manager(lock),
            Scheme::LogAtLastHolder => self.locks.get(&lock).is_none_or(|state| {
                // If this node manages the lock as well, it knows what it has granted.
                !self.manages(lock) || state.is_held_by(self.me) || !state.knows(self.me, thread)
            }),
        }
    }

    /// The mode in which a thread wants this lock, if it waits for the lock and has no grant yet.
    fn lacks(&self, lock: LockId, thread: ThreadId) -> Option<Mode> {
        let came = |granted: &VecDeque<Granted>| granted.iter().any(|one| one.thread == thread);
        if self.granted.get(&lock).is_some_and(came) {
            return None;
        }
        match self.waiting.get(&thread)?.call {
            Call::Acquire(asked, mode, _) if asked == lock => Some(mode),
            Call::WaitOn(asked, _) if asked == lock => Some(Mode::Exclusive),
            _ => None,
        }
    }

    /// Whether the program is at a barrier, and so writes nothing.
    pub(crate) fn is_at_barrier(&self) -> bool {
        self.waiting.values().any(|waiting| waiting.call.is_barrier())
    }

    /// Whether the program is at a barrier that is not crossed.
    fn is_before_barrier(&self) -> bool {
        self.is_at_barrier() && !self.crossed
    }

    /// Whether a message of this node can end the epoch.
    fn may_end(&self, from: NodeId) -> bool {
        from == BARRIER_MANAGER && self.is_before_barrier() && self.ending.is_none()
    }

    /// Whether this node could not create a region, and no refusal has arrived.
    fn lacks_refusal(&self) -> bool {
        let mut waiting = self.waiting.values();
        let is_hindered = waiting.any(|waiting| matches!(waiting.call, Call::Region(_, Some(_))));
        is_hindered && self.refused.is_none()
    }

    fn is_manager(&self, node: NodeId, page: PageId) -> bool {
        self.layout.regions.manager(page) == Some(node)
    }

    fn manages_all(&self, updates: &[Update]) -> bool {
        updates.iter().all(|update| self.is_manager(self.me, update.address.page))
    }
}

/// Whether each lock is named at most once.
fn each_once(locks: &[LockId]) -> bool {
    let mut named = BTreeSet::new();
    locks.iter().all(|lock| named.insert(*lock))
}

/// Whether each lock and each page moves at most once.
fn each_moves_once(moves: &[Move]) -> bool {
    let (mut locks, mut pages) = (BTreeSet::<LockId>::new(), BTreeSet::<PageId>::new());
    moves.iter().all(|asked| match *asked {
        Move::Lock(lock, _) => locks.insert(lock),
        Move::Page(page, _) => pages.insert(page),
    })
}
