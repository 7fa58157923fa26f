//! The messages between nodes.
//!
//! ```text
//! lock, log at the manager                     lock, log at the last holder
//!   A ── Acquire(seen) ──> manager               A ── Acquire ──> manager ─ HandOn ─> last holder
//!   A <── Grant(updates since seen) ── manager   A <───────────── Grant(all updates) ─────┘
//!   A ── Release(updates) ──> manager            A ── Release ──> manager
//!
//! barrier                                        page
//!   all ── Flush(updates) ──> their managers       A ── Fetch ──> manager
//!   all ── Arrive ──> node 0 ── Go ──> all         A <── Page ── manager (unasked too, as agreed)
//!   old manager ── Master ──> new manager of a page
//!
//! a region                                       no region: a node creates another
//!   all ── Region ─ Arrive ──> node 0              all ── Region ─ Arrive ──> node 0
//!   node 0 ── Go ──> all                           node 0 ── Refuse ─ Go ──> all
//!
//! the last barrier                               a node needs one that has left
//!   each node that has crossed it ── Left ──> all  ── Stranded ──> all
//! ```

use serde::{Deserialize, Serialize};

use crate::address::{ConditionId, LockId, NodeId, PageId, ThreadId};
use crate::encoding;
use crate::lock::Mode;
use crate::page::Contents;
use crate::region::RegionPlan;
use crate::region::mismatch::{RegionFailure, RegionMismatch};
use crate::update::Update;

/// A change of manager at the next barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Move {
    /// Of a lock.
    Lock(LockId, NodeId),
    /// Of a page.
    Page(PageId, NodeId),
}

impl Move {
    /// The page, if a page is moved.
    pub(crate) fn page(self) -> Option<PageId> {
        match self {
            Self::Page(page, _) => Some(page),
            Self::Lock(..) => None,
        }
    }
}

/// How a barrier treats pages that only one node has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrierKind {
    /// Like all other pages.
    Ordinary,
    /// The writer becomes the page's manager. Its later writes need no update until another node
    /// asks for the page.
    SingleReadWrite,
}

/// A message. It travels with the epoch of its sender, which matters for all messages but `Lost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Asks a lock's manager for the lock.
    Acquire {
        /// The lock.
        lock: LockId,
        /// The sender's thread that wants the lock.
        thread: ThreadId,
        /// Whether it excludes others.
        mode: Mode,
        /// The sender does not wait: the answer may be `Busy`.
        immediately: bool,
        /// Stamp of the newest update that the sender has.
        seen: u64,
    },
    /// A thread of the sender no longer waits for the lock.
    Cancel(LockId, ThreadId),
    /// A thread of the sender no longer waits on a condition, and acquires the lock again.
    Awaken(LockId, ThreadId),
    /// The lock is not available at once, or not in time, for that thread of the receiver.
    Busy(LockId, ThreadId),
    /// Grants the lock, with what was written under it.
    Grant {
        /// The lock.
        lock: LockId,
        /// The receiver's thread that asked for it.
        thread: ThreadId,
        /// How it is held.
        mode: Mode,
        /// Stamp of the newest of the updates.
        stamp: u64,
        /// Lamport time of the last release.
        time: u64,
        /// The updates that the receiver has not seen.
        #[serde(with = "encoding::updates")]
        updates: Vec<Update>,
    },
    /// The manager tells the last holder to grant the lock.
    HandOn {
        /// The lock.
        lock: LockId,
        /// The node that gets it.
        to: NodeId,
        /// The thread that gets it.
        thread: ThreadId,
        /// How it is held.
        mode: Mode,
        /// Lamport time of the last release.
        time: u64,
    },
    /// Releases an exclusive lock.
    Release {
        /// The lock.
        lock: LockId,
        /// Lamport time of the release.
        time: u64,
        /// The updates made under it; empty if the last holder keeps the log.
        #[serde(with = "encoding::updates")]
        updates: Vec<Update>,
        /// The condition variable to wait on, if any, and the thread that waits.
        then_wait: Option<(ConditionId, ThreadId)>,
        /// As in `Acquire`, for the grant that ends the wait.
        seen: u64,
    },
    /// Wakes threads that wait on a condition variable.
    Signal {
        /// Its lock.
        lock: LockId,
        /// The condition variable.
        condition: ConditionId,
        /// Whether all of them wake, or the first one.
        all: bool,
    },
    /// Updates for a page's manager: one message to each manager.
    Flush(#[serde(with = "encoding::updates")] Vec<Update>),
    /// The sender has arrived at the barrier.
    Arrive {
        /// Its Lamport time.
        time: u64,
        /// Pages that it has written since the last barrier.
        written: Vec<PageId>,
        /// Locks that it holds exclusively.
        held: Vec<LockId>,
        /// Managers that are to change.
        moves: Vec<Move>,
        /// The kind of the barrier.
        kind: BarrierKind,
    },
    /// All nodes have arrived at the barrier.
    Go {
        /// The latest Lamport time of all nodes.
        time: u64,
        /// The writers of each page.
        written: Vec<(PageId, Vec<NodeId>)>,
        /// The holders of locks.
        held: Vec<(LockId, NodeId)>,
        /// Managers from now on.
        moves: Vec<Move>,
        /// The kind that all nodes asked for; otherwise `Ordinary`.
        kind: BarrierKind,
    },
    /// The master of a page, for its new manager.
    Master(PageId, #[serde(with = "encoding::contents")] Contents),
    /// Asks for a page. The number tells for how many later barriers that change the page it is
    /// sent again, unasked.
    Fetch(PageId, u8),
    /// A page.
    Page(PageId, #[serde(with = "encoding::contents")] Contents),
    /// A node is dead.
    Lost(NodeId),
    /// The sender has crossed its last barrier. It needs no other node, and no node needs to send
    /// it anything.
    Left,
    /// The sender cannot continue without this node, which has left.
    Stranded(NodeId),
    /// Sent right before `Arrive`: the sender creates this region at the barrier, or tells what
    /// prevents it.
    Region(RegionPlan, Option<RegionFailure>),
    /// Sent right before `Go`: no node creates a region at this barrier, because the nodes differ.
    Refuse(RegionMismatch),
}

/// When the receiver has to process a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Now: some thread waits for the result.
    Now,
    /// When the receiver waits for something itself, or later. No thread there is woken for it.
    WhenWaiting,
}

impl Message {
    /// When the receiver needs the message. What a node sends before a barrier can wait until the
    /// receiver is at the barrier. A released lock can wait until a thread asks for it.
    pub(crate) fn urgency(&self) -> Urgency {
        match self {
            Self::Flush(_) | Self::Region(..) | Self::Arrive { .. } | Self::Master(..) => {
                Urgency::WhenWaiting
            }
            Self::Release { then_wait: None, .. } => Urgency::WhenWaiting,
            _ => Urgency::Now,
        }
    }

    /// The memory that the message takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let behind = match self {
            Self::Grant { updates, .. } | Self::Release { updates, .. } | Self::Flush(updates) => {
                size_of_val(&updates[..])
            }
            Self::Arrive { written, held, moves, .. } => {
                size_of_val(&written[..]) + size_of_val(&held[..]) + size_of_val(&moves[..])
            }
            Self::Go { written, held, moves, .. } => {
                let writers = written.iter().map(|(_, writers)| size_of_val(&writers[..]));
                let pages = size_of_val(&written[..]) + writers.sum::<usize>();
                pages + size_of_val(&held[..]) + size_of_val(&moves[..])
            }
            Self::Master(_, contents) | Self::Page(_, contents) => size_of_val(&contents[..]),
            _ => 0,
        };
        size_of::<Self>() + behind
    }

    /// The name of the message, for errors.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Acquire { .. } => "Acquire",
            Self::Cancel(..) => "Cancel",
            Self::Awaken(..) => "Awaken",
            Self::Busy(..) => "Busy",
            Self::Grant { .. } => "Grant",
            Self::HandOn { .. } => "HandOn",
            Self::Release { .. } => "Release",
            Self::Signal { .. } => "Signal",
            Self::Flush(_) => "Flush",
            Self::Arrive { .. } => "Arrive",
            Self::Go { .. } => "Go",
            Self::Master(..) => "Master",
            Self::Fetch(..) => "Fetch",
            Self::Page(..) => "Page",
            Self::Lost(_) => "Lost",
            Self::Left => "Left",
            Self::Stranded(_) => "Stranded",
            Self::Region(..) => "Region",
            Self::Refuse(_) => "Refuse",
        }
    }
}
