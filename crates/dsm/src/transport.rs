//! Transports: they carry messages between nodes in order and without loss, or report that the peer
//! is lost.
//!
//! [`Tcp`] connects processes on any machines, [`Shm`] processes on one machine, [`Local`] nodes
//! inside one process. All pass the suite in `tests/transport.rs`. `Mpi` (feature `mpi`) connects
//! the processes of an MPI job.

mod connections;
mod credit;
mod handshake;
mod local;
#[cfg(feature = "mpi")]
mod mpi;
mod readiness;
mod shm;
mod tcp;

use core::fmt;
use core::iter::Sum;
use core::time::Duration;

use kyocho_sys::prim::clock::Instant;

use crate::address::NodeId;

pub use crate::message::Urgency;
pub use handshake::{Cluster, JoinError, Refusal, Secret};
pub use local::Local;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use shm::{SHM_NODES_MAX, Shared, Shm};
pub use tcp::Tcp;

/// What a transport delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// A message.
    Message(NodeId, Vec<u8>),
    /// A peer has said goodbye: it has left.
    Left(NodeId),
    /// A peer is dead, or must be treated as dead. Delivered once; nothing arrives from it
    /// afterwards.
    Lost(NodeId, Cause),
}

/// Why a peer counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Its connection ended.
    Closed,
    /// Nothing arrived from it within the deadline.
    Silent,
    /// It does not accept what it is sent: more bytes wait for it than the bound, although the
    /// program is blocked much earlier.
    Congested,
    /// It violated the protocol.
    InvalidMessage,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "its connection ended",
            Self::Silent => "it was silent for longer than the deadline",
            Self::Congested => "it does not receive its messages fast enough",
            Self::InvalidMessage => "it violated the protocol",
        })
    }
}

/// Number of messages and bytes of one node, with one peer or with all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages sent.
    pub messages_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
}

impl Traffic {
    /// Counts a message that was sent.
    pub(crate) fn sent(&mut self, message: &[u8]) {
        self.messages_sent += 1;
        self.bytes_sent += message.len() as u64;
    }

    /// Counts a message that has arrived.
    pub(crate) fn received(&mut self, message: &[u8]) {
        self.messages_received += 1;
        self.bytes_received += message.len() as u64;
    }
}

impl Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            messages_sent: sum.messages_sent + one.messages_sent,
            bytes_sent: sum.bytes_sent + one.bytes_sent,
            messages_received: sum.messages_received + one.messages_received,
            bytes_received: sum.bytes_received + one.bytes_received,
        })
    }
}

/// Bounds of connections.
#[derive(Debug, Clone, Copy)]
pub struct TcpSettings {
    /// A peer that is silent for longer is dead. A living one sends four times as often.
    pub deadline: Duration,
    /// Bytes of one message, at most. A peer that sends more is lost.
    pub message_bytes_max: usize,
    /// Bytes that may wait for one peer. A peer for which more wait is lost.
    pub queue_bytes_max: usize,
}

/// If more bytes wait for one peer, the program is blocked. Answers to other nodes are not blocked:
/// their number is bounded by the requests, whose senders wait.
pub const FULL_BYTES: usize = 1024 * 1024;

/// The kinds of threads that wait for messages; at most one thread of each kind waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiter {
    /// A thread of the program, in a call that has not returned.
    Caller,
    /// The service thread.
    Service,
}

/// One node's connections to all others.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a message. Never blocks. A message to a peer that is lost or has left is dropped. If a
    /// peer accepts no more, [`Arrival::Lost`] reports that.
    fn send(&self, to: NodeId, message: &[u8]);

    /// Sends a message with an urgency. Transports may ignore the urgency.
    fn send_with(&self, to: NodeId, message: &[u8], _urgency: Urgency) {
        self.send(to, message);
    }

    /// A thread begins a call. Until its end it looks for messages itself, and soon, so no thread
    /// is woken for them.
    fn begin_call(&self) {}

    /// A thread ends its call, or stops looking. Returns whether [`Self::take`] has messages for
    /// which no thread was woken.
    fn end_call(&self) -> bool {
        false
    }

    /// Whether so many bytes wait for some peer that a thread of the program must wait before it
    /// sends more ([`FULL_BYTES`], or half of the bound if that is less). The thread receives
    /// meanwhile, so two nodes that wait for each other's queues empty them.
    fn is_full(&self) -> bool {
        false
    }

    /// Tells the transport whether other nodes wait for this one. After `hurry(true)` no sender may
    /// delay a message to this node; after `hurry(false)` senders may delay them again. Calls with
    /// `true` and `false` alternate. After each, the caller must check for messages once, because
    /// an earlier one may have been delayed.
    fn hurry(&self, _on: bool) {}

    /// Waits until [`Self::take`] may have something, at most for `timeout`. Returns whether the
    /// connections are open. If threads of both kinds wait, only the [`Waiter::Caller`] is woken.
    /// It must have begun a call ([`Self::begin_call`]).
    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool;

    /// Takes what has arrived. Never blocks. Call it after a wait, or call a wait later: what a
    /// wait has found is found only once.
    fn take(&self) -> Vec<Arrival>;

    /// Sends a heartbeat to each peer to which nothing was sent for a while. Waits for no other
    /// thread, so a busy node is not taken for dead.
    ///
    /// Returns the time until the next call, or `None` if this transport needs no heartbeats from a
    /// separate thread.
    fn send_heartbeats(&self) -> Option<Duration> {
        None
    }

    /// Ends the wait of the calling thread ([`Waiter::Caller`]), or its next one.
    fn rouse(&self);

    /// Waits for arrivals, at most for `timeout`.
    fn receive(&self, timeout: Duration) -> Vec<Arrival> {
        let until = Instant::now() + timeout;
        loop {
            let arrivals = self.take();
            let left = until.saturating_duration_since(Instant::now());
            if !arrivals.is_empty() || left.is_zero() || !self.wait(Waiter::Service, left) {
                return arrivals;
            }
        }
    }

    /// Says goodbye to all peers. Earlier messages arrive earlier.
    fn leave(&self);

    /// Closes all connections without a goodbye; a thread in [`Self::receive`] returns. Blocks for
    /// at most half a second.
    fn close(&self);

    /// Sets bounds for the bytes of a message and for the bytes that wait for one peer. Transports
    /// without bounds ignore it.
    fn bound(&self, (_message_bytes_max, _queue_bytes_max): (usize, usize)) {}

    /// The traffic so far, with all peers.
    fn traffic(&self) -> Traffic;

    /// The part of it with one peer; none with this node itself or beyond the cluster.
    fn traffic_with(&self, peer: NodeId) -> Traffic;
}
