//! Carrying messages between nodes: in order, none lost, or the peer is.
//!
//! [`Tcp`] connects processes on any machines, [`Local`] the nodes inside one process. Both hold to the suite in
//! `tests/transport.rs`.

mod credit;
mod handshake;
mod local;
mod tcp;

use core::fmt;
use core::time::Duration;

use crate::address::NodeId;

pub use handshake::{Cluster, JoinError, Refusal, Secret};
pub use local::Local;
pub use tcp::{Tcp, TcpSettings};

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
    /// It does not take what it is sent: more than the bound waits for it.
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

/// One node's connections to all others.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a message. Never blocks; a peer that is lost or has left gets nothing, and of a peer that takes nothing more
    /// [`Arrival::Lost`] tells.
    fn send(&self, to: NodeId, message: &[u8]);

    /// Waits for what comes, at most for `timeout`. One thread at a time.
    fn receive(&self, timeout: Duration) -> Vec<Arrival>;

    /// Tells all peers that nobody needs this node any more. Messages sent before arrive before.
    fn leave(&self);

    /// Ends all connections without a word; a thread in [`Self::receive`] returns. Blocks for half a second at most.
    fn close(&self);

    /// What was carried so far.
    fn traffic(&self) -> Traffic;
}
