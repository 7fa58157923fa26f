//! The manager's side of one lock: who has it, who waits, and the log of what was written under it.
//!
//! Each update is in the log with the stamp of the release that brought it; the barrier empties it ([`Log`]).
//!
//! By the paper's old scheme the manager's log is of no use; the last holder keeps a [`crate::log::History`].
//!
//! A non-exclusive lock is a snapshot (Paper 3, §3): it waits until no exclusive holder is in, and excludes nobody.

use std::collections::VecDeque;

use crate::address::{ConditionId, NodeId, ThreadId};
use crate::log::Log;
use crate::update::Update;

/// How a lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Mode {
    /// One holder at a time.
    Exclusive,
    /// A view of what the last exclusive holder left; excludes nobody.
    NonExclusive,
}

/// Who asked for a lock, and what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) node: NodeId,
    pub(crate) thread: ThreadId,
    pub(crate) mode: Mode,
    pub(crate) seen: u64,
}

impl Request {
    fn is_of(&self, node: NodeId, thread: ThreadId) -> bool {
        self.node == node && self.thread == thread
    }
}

/// The state of one lock in one epoch.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    holder: Option<NodeId>,
    /// The holder's thread, where it took the lock in this epoch.
    holding: Option<ThreadId>,
    queue: VecDeque<Request>,
    waiting: Vec<(ConditionId, Request)>,
    /// The last exclusive holder of this epoch.
    last: Option<NodeId>,
    log: Log,
    stamp: u64,
    time: u64,
}

impl Lock {
    /// A lock at the begin of an epoch.
    pub(crate) fn held_by(holder: NodeId) -> Self {
        Self { holder: Some(holder), last: Some(holder), ..Self::default() }
    }

    /// Begins an epoch, in which nobody has it; whether it was of any use in the last one.
    pub(crate) fn begin_epoch(&mut self) -> bool {
        let (was_used, mut log) = (self.stamp > 0, core::mem::take(&mut self.log));
        log.clear();
        *self = Self { log, ..Self::default() };
        was_used
    }

    /// Queues a request, and says whether it can be granted at once.
    pub(crate) fn request(&mut self, request: Request) {
        self.queue.push_back(request);
    }

    /// Whether somebody is in, or before a newcomer.
    pub(crate) fn is_busy(&self) -> bool {
        self.holder.is_some() || !self.queue.is_empty()
    }

    /// Whether somebody waits for it.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether this node has it exclusively.
    pub(crate) fn is_held_by(&self, node: NodeId) -> bool {
        self.holder == Some(node)
    }

    /// Whether this thread of a node has it exclusively, or waits for it, or for a condition of it.
    pub(crate) fn knows(&self, node: NodeId, thread: ThreadId) -> bool {
        let holds = self.is_held_by(node) && self.holding == Some(thread);
        holds || self.is_awaited_by(node, thread)
    }

    /// Whether this thread of a node waits for it, or for a condition of it.
    pub(crate) fn is_awaited_by(&self, node: NodeId, thread: ThreadId) -> bool {
        let mut asked = self.queue.iter().chain(self.waiting.iter().map(|(_, request)| request));
        asked.any(|request| request.is_of(node, thread))
    }

    /// Takes the next request that can be granted now.
    pub(crate) fn next(&mut self) -> Option<Request> {
        if self.holder.is_some() {
            return None;
        }
        let request = self.queue.pop_front()?;
        if request.mode == Mode::Exclusive {
            (self.holder, self.holding) = (Some(request.node), Some(request.thread));
        }
        Some(request)
    }

    /// Takes a waiter out of the queue; `false` if it is not there.
    pub(crate) fn cancel(&mut self, node: NodeId, thread: ThreadId) -> bool {
        let before = self.queue.len();
        self.queue.retain(|request| !request.is_of(node, thread));
        self.queue.len() < before
    }

    /// Takes the lock back from its holder.
    pub(crate) fn release(&mut self, node: NodeId, time: u64, updates: Vec<Update>) {
        assert_eq!(self.holder, Some(node), "a lock is released by who holds it");
        (self.holder, self.holding) = (None, None);
        self.last = Some(node);
        self.time = self.time.max(time);
        self.stamp += 1;
        self.log.append(self.stamp, updates);
    }

    /// Takes the lock from a holder that has left, after a barrier that made all visible: there is nothing to hand on.
    pub(crate) fn abandon(&mut self) {
        (self.holder, self.holding, self.last) = (None, None, None);
    }

    /// Lets a node wait on a condition variable.
    pub(crate) fn wait(&mut self, condition: ConditionId, request: Request) {
        self.waiting.push((condition, request));
    }

    /// Moves this thread of a node from its condition variable, if it waits on one, to the queue.
    pub(crate) fn awaken(&mut self, node: NodeId, thread: ThreadId) {
        let place = self.waiting.iter().position(|(_, request)| request.is_of(node, thread));
        self.queue.extend(place.map(|place| self.waiting.remove(place).1));
    }

    /// Moves one waiter, or all, from a condition variable to the queue.
    pub(crate) fn signal(&mut self, condition: ConditionId, all: bool) {
        while let Some(place) = self.waiting.iter().position(|(on, _)| *on == condition) {
            let (_, request) = self.waiting.remove(place);
            self.queue.push_back(request);
            if !all {
                return;
            }
        }
    }

    /// What was written after the release with the stamp `seen`.
    pub(crate) fn updates_since(&self, seen: u64) -> Vec<Update> {
        self.log.since(seen)
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// Who has the log where the last holder keeps it.
    pub(crate) fn last(&self) -> Option<NodeId> {
        self.last
    }
}
