//! The outgoing queue of one peer, and the count of queues that are full.

use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_sys::prim::atomic::unmodelled::{AtomicUsize, Ordering};
use kyocho_sys::prim::clock::Instant;

use super::Medium;
use super::counts::Counts;
use crate::address::NodeId;
use crate::transport::credit::Outgoing;
use crate::transport::{Cause, Urgency};

/// A peer, as senders see it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    pub(super) place: usize,
    pub(super) counts: Counts,
    queue: Mutex<Queue>,
    /// Number of peers whose queues are full.
    full: Arc<AtomicUsize>,
}

/// What is to be sent to a peer.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) out: Outgoing,
    spoke: Instant,
    /// The peer is lost, and gets nothing more. `unsent` is the cause until it has been reported.
    pub(super) over: bool,
    pub(super) unsent: Option<Cause>,
    /// Whether [`Peer::full`] counts this peer.
    is_full: bool,
}

/// A locked queue. The count of full queues is updated when it is dropped.
pub(super) struct Locked<'a> {
    queue: MutexGuard<'a, Queue>,
    full: &'a AtomicUsize,
}

impl Deref for Locked<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Queue {
        &mut self.queue
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let is_full = !self.queue.over && self.queue.out.is_full();
        match (core::mem::replace(&mut self.queue.is_full, is_full), is_full) {
            (false, true) => _ = self.full.fetch_add(1, Ordering::AcqRel),
            (true, false) => _ = self.full.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
    }
}

impl Peer {
    pub(super) fn new(node: NodeId, place: usize, out: Outgoing, full: Arc<AtomicUsize>) -> Self {
        let (spoke, over, unsent, is_full) = (Instant::now(), false, None, false);
        let queue = Mutex::new(Queue { out, spoke, over, unsent, is_full });
        Self { node, place, counts: Counts::default(), queue, full }
    }

    pub(super) fn queue(&self) -> Locked<'_> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { queue, full: &self.full }
    }

    /// Sends what the medium accepts now.
    pub(super) fn push(&self, medium: &impl Medium, queue: &mut Queue, urgency: Urgency) {
        while !queue.over && !queue.out.ready().is_empty() {
            match medium.write(self.place, queue.out.ready(), urgency) {
                Ok(bytes) => {
                    queue.out.sent(bytes);
                    queue.spoke = Instant::now();
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return,
                // Reading finds out why: there may be a goodbye.
                Err(_) => queue.over = true,
            }
        }
    }

    /// Sends a heartbeat if nothing was sent for so long. Returns whether the loss of the peer
    /// still has to be reported.
    pub(super) fn send_heartbeat(
        &self,
        medium: &impl Medium,
        now: Instant,
        every: Duration,
    ) -> bool {
        let mut queue = self.queue();
        if !queue.over && now.saturating_duration_since(queue.spoke) >= every {
            queue.out.alive();
            // Even if the medium accepted nothing: otherwise each call would queue another one.
            queue.spoke = now;
            self.push(medium, &mut queue, Urgency::Now);
        }
        queue.unsent.is_some()
    }
}
