//! The manager's side of one lock: its holder, the requests that wait, and the log of what was
//! written under it.
//!
//! Each update in the log carries the stamp of the release that brought it. A barrier empties the
//! log ([`Log`]). In the paper's old scheme the manager's log is unused; the last holder keeps a
//! [`crate::log::History`].
//!
//! A non-exclusive lock is a snapshot (Paper 3, §3): it waits for an exclusive holder, and excludes
//! no node.

use std::collections::VecDeque;

use crate::address::{ConditionId, NodeId, ThreadId};
use crate::log::Log;
use crate::update::Update;

/// How a lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Mode {
    /// One holder at a time.
    Exclusive,
    /// A view of what the last exclusive holder has released; excludes no node.
    NonExclusive,
}

/// A request for a lock, and what the requesting node has seen of it.
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
    /// The holder's thread, if it acquired the lock in this epoch.
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
    /// A lock that is held at the beginning of an epoch.
    pub(crate) fn held_by(holder: NodeId) -> Self {
        Self { holder: Some(holder), last: Some(holder), ..Self::default() }
    }

    /// Begins an epoch, in which no node holds the lock. Returns whether it was released in the
    /// last epoch.
    pub(crate) fn begin_epoch(&mut self) -> bool {
        let (was_used, mut log) = (self.stamp > 0, core::mem::take(&mut self.log));
        log.clear();
        *self = Self { log, ..Self::default() };
        was_used
    }

    /// Queues a request.
    pub(crate) fn request(&mut self, request: Request) {
        self.queue.push_back(request);
    }

    /// Whether the lock is held, or requests are queued.
    pub(crate) fn is_busy(&self) -> bool {
        self.holder.is_some() || !self.queue.is_empty()
    }

    /// Whether requests are queued.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether this node holds it exclusively.
    pub(crate) fn is_held_by(&self, node: NodeId) -> bool {
        self.holder == Some(node)
    }

    /// Whether this thread of a node holds it exclusively, or waits for it or for a condition of
    /// it.
    pub(crate) fn knows(&self, node: NodeId, thread: ThreadId) -> bool {
        let holds = self.is_held_by(node) && self.holding == Some(thread);
        holds || self.is_awaited_by(node, thread)
    }

    /// Whether this thread of a node waits for it, or for a condition of it.
    pub(crate) fn is_awaited_by(&self, node: NodeId, thread: ThreadId) -> bool {
        let mut asked = self.queue.iter().chain(self.waiting.iter().map(|(_, request)| request));
        asked.any(|request| request.is_of(node, thread))
    }

    /// Takes the next request from the queue that can be granted now.
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

    /// Removes a request from the queue; `false` if it is not queued.
    pub(crate) fn cancel(&mut self, node: NodeId, thread: ThreadId) -> bool {
        let before = self.queue.len();
        self.queue.retain(|request| !request.is_of(node, thread));
        self.queue.len() < before
    }

    /// Records the release by its holder.
    pub(crate) fn release(&mut self, node: NodeId, time: u64, updates: Vec<Update>) {
        assert_eq!(self.holder, Some(node), "a lock is released by its holder");
        (self.holder, self.holding) = (None, None);
        self.last = Some(node);
        self.time = self.time.max(time);
        self.stamp += 1;
        self.log.append(self.stamp, updates);
    }

    /// Takes the lock from a holder that has left. A barrier has made all its writes visible, so
    /// there is nothing to pass on.
    pub(crate) fn abandon(&mut self) {
        (self.holder, self.holding, self.last) = (None, None, None);
    }

    /// Makes a request wait on a condition variable.
    pub(crate) fn wait(&mut self, condition: ConditionId, request: Request) {
        self.waiting.push((condition, request));
    }

    /// Moves the request of this thread from its condition variable to the queue, if it waits on
    /// one.
    pub(crate) fn awaken(&mut self, node: NodeId, thread: ThreadId) {
        let place = self.waiting.iter().position(|(_, request)| request.is_of(node, thread));
        self.queue.extend(place.map(|place| self.waiting.remove(place).1));
    }

    /// Moves the first waiting request, or all of them, from a condition variable to the queue.
    pub(crate) fn signal(&mut self, condition: ConditionId, all: bool) {
        while let Some(place) = self.waiting.iter().position(|(on, _)| *on == condition) {
            let (_, request) = self.waiting.remove(place);
            self.queue.push_back(request);
            if !all {
                return;
            }
        }
    }

    /// The updates of releases after the one with the stamp `seen`.
    pub(crate) fn updates_since(&self, seen: u64) -> Vec<Update> {
        self.log.since(seen)
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The node that has the log, where the last holder keeps it.
    pub(crate) fn last(&self) -> Option<NodeId> {
        self.last
    }
}
