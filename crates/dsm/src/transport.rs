//! Carrying messages between nodes: in order, none lost, or the peer is.
//!
//! [`Tcp`] connects processes on any machines, [`Shm`] those on one, [`Local`] the nodes inside one process. All hold to the suite in
//! `tests/transport.rs`. `Mpi` (feature `mpi`) connects the processes of an MPI job.

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

/// What a transport brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// A message.
    Message(NodeId, Vec<u8>),
    /// A peer said that nobody needs it any more, and has gone.
    Left(NodeId),
    /// A peer is dead, or might as well be. Told once; nothing comes from it afterwards.
    Lost(NodeId, Cause),
}

/// Why a peer counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Its connection ended.
    Closed,
    /// Nothing was heard of it for longer than the deadline.
    Silent,
    /// It does not take what it is sent: more than the bound waits for it, though the program is held
    /// back long before.
    Congested,
    /// It sent what no node of this version sends.
    Nonsense,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "its connection ended",
            Self::Silent => "it was silent for longer than the deadline",
            Self::Congested => "it takes nothing of what it is sent",
            Self::Nonsense => "it sent nonsense",
        })
    }
}

/// Messages and bytes, of one node.
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

/// Bounds.
#[derive(Debug, Clone, Copy)]
pub struct TcpSettings {
    /// Silence of a peer that means death. A living one speaks four times as often.
    pub deadline: Duration,
    /// Bytes of one message at most; a peer that sends more is lost.
    pub message_bytes_max: usize,
    /// Bytes that may wait for one peer; when it takes less, it is lost.
    pub queue_bytes_max: usize,
}

/// Bytes that wait for one peer when the program is held back. What the node answers to others is
/// not: it is bounded by what these ask, who wait for it.
pub const FULL_BYTES: usize = 1024 * 1024;

/// Who waits for what comes: one thread of each kind at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiter {
    /// A thread of the program, in a call that is not answered yet.
    Caller,
    /// The thread that is there for messages nobody waits for.
    Service,
}

/// One node's connections to all others.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a message. Never blocks; a peer that is lost or has left gets nothing, and of a peer that takes nothing more
    /// [`Arrival::Lost`] tells.
    fn send(&self, to: NodeId, message: &[u8]);

    /// The same, for a message that may wait. Where this makes no difference, it makes none.
    fn send_with(&self, to: NodeId, message: &[u8], _urgency: Urgency) {
        self.send(to, message);
    }

    /// A thread begins a call: until it ends that, it looks for what comes itself, soon, and nobody is woken for it.
    fn begin_call(&self) {}

    /// It ends its call, or goes on without looking; whether something came that [`Self::take`] has, and nobody was woken for.
    fn end_call(&self) -> bool {
        false
    }

    /// Whether so much waits for some peer that is not lost that a thread of the program is to wait
    /// before it says more ([`FULL_BYTES`], or half of the bound where that is less). It takes what
    /// comes meanwhile, so two nodes that wait for each other's queues empty them.
    fn is_full(&self) -> bool {
        false
    }

    /// Others wait for what this node is told: from now on nothing may wait that it is sent; or no more. Who calls this looks for what has come afterwards.
    fn hurry(&self, _on: bool) {}

    /// Waits until [`Self::take`] may have something, at most for `timeout`; whether the connections were not closed here. Of a thread that calls,
    /// in a call that it has begun, and one that serves, both waiting, the first alone is woken.
    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool;

    /// Takes what has come. Never blocks. Who calls this has waited before, or will look again: what a wait found is found once.
    fn take(&self) -> Vec<Arrival>;

    /// Sends a heartbeat to each peer that was sent nothing for a while. Waits for no other thread,
    /// so that a node that is busy is not taken for dead.
    ///
    /// Returns after how long it is to be called again; `None`: this transport needs no heartbeats
    /// of a thread of their own.
    fn send_heartbeats(&self) -> Option<Duration> {
        None
    }

    /// Ends the wait of the thread that calls, or its next one.
    fn rouse(&self);

    /// Waits for what comes, at most for `timeout`.
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

    /// Tells all peers that nobody needs this node any more. Messages sent before arrive before.
    fn leave(&self);

    /// Ends all connections without a word; a thread in [`Self::receive`] returns. Blocks for half a second at most.
    fn close(&self);

    /// From now on a message has so many bytes at most, and so many may wait for one peer. Where there are no bounds, there are none.
    fn bound(&self, (_message_bytes_max, _queue_bytes_max): (usize, usize)) {}

    /// What was carried so far.
    fn traffic(&self) -> Traffic;
}
