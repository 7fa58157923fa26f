//! What is to be sent to one peer, and to whom so much is that the program is held back.

use core::ops::{Deref, DerefMut};
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_sys::prim::atomic::unmodelled::{AtomicUsize, Ordering};
use kyocho_sys::prim::clock::Instant;

use super::Medium;
use crate::address::NodeId;
use crate::transport::credit::Outgoing;
use crate::transport::{Cause, Urgency};

/// A peer, as senders know it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    pub(super) place: usize,
    queue: Mutex<Queue>,
    /// How many peers have full queues.
    full: Arc<AtomicUsize>,
}

/// What is to be sent to a peer.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) out: Outgoing,
    spoke: Instant,
    /// It gets nothing any more; why, until that was told.
    pub(super) over: bool,
    pub(super) untold: Option<Cause>,
    /// It is one of those that [`Peer::full`] counts.
    is_full: bool,
}

/// A queue in use. Whatever was done with it, the number of full ones is right afterwards.
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
        let (spoke, over, untold, is_full) = (Instant::now(), false, None, false);
        Self { node, place, queue: Mutex::new(Queue { out, spoke, over, untold, is_full }), full }
    }

    pub(super) fn queue(&self) -> Locked<'_> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { queue, full: &self.full }
    }

    /// Sends what the medium takes now.
    pub(super) fn push(&self, medium: &impl Medium, queue: &mut Queue, urgency: Urgency) {
        while !queue.over && !queue.out.ready().is_empty() {
            match medium.write(self.place, queue.out.ready(), urgency) {
                Ok(bytes) => {
                    queue.out.sent(bytes);
                    queue.spoke = Instant::now();
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return,
                // Reading tells what came of it: there may be a goodbye.
                Err(_) => queue.over = true,
            }
        }
    }

    /// Sends a heartbeat when nothing was sent for so long; whether the peer's death is known here,
    /// and not reported.
    pub(super) fn send_heartbeat(
        &self,
        medium: &impl Medium,
        now: Instant,
        every: Duration,
    ) -> bool {
        let mut queue = self.queue();
        if !queue.over && now.saturating_duration_since(queue.spoke) >= every {
            queue.out.alive();
            // Also where nothing is taken: not to queue another at once.
            queue.spoke = now;
            self.push(medium, &mut queue, Urgency::Now);
        }
        queue.untold.is_some()
    }
}
