//! What nodes tell each other.
//!
//! ```text
//! lock, log at the manager                      lock, log at the last holder
//!   A ── Acquire(seen) ──> manager                A ── Acquire ──> manager ── HandOn ──> last holder
//!   A <── Grant(updates since seen) ── manager    A <───────────── Grant(all updates) ──────┘
//!   A ── Release(updates) ──> manager             A ── Release ──> manager
//!
//! barrier                                                    page
//!   all ── Flush(updates) ──> managers of their pages          A ── Fetch ──> manager
//!   all ── Arrive ──> node 0 ── Go ──> all                     A <── Page ── manager (also unasked, as was agreed)
//!   old manager ── Master ──> new manager of a page
//!
//! a region                                                   no region, where one node makes another
//!   all ── Region ─ Arrive ──> node 0 ── Go ──> all            all ── Region ─ Arrive ──> node 0 ── Refuse ─ Go ──> all
//!
//! the last barrier                                           a node that needs one that has left
//!   who has crossed it ── Left ──> all                         ── Stranded ──> all
//! ```

use serde::{Deserialize, Serialize};

use crate::address::{ConditionId, LockId, NodeId, PageId, ThreadId};
use crate::encoding;
use crate::lock::Mode;
use crate::page::Contents;
use crate::region::RegionPlan;
use crate::region::discord::{Discord, Hindrance};
use crate::update::Update;

/// Another manager from the next barrier on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Move {
    /// Of a lock.
    Lock(LockId, NodeId),
    /// Of a page.
    Page(PageId, NodeId),
}

impl Move {
    /// The page, if it is of one.
    pub(crate) fn page(self) -> Option<PageId> {
        match self {
            Self::Page(page, _) => Some(page),
            Self::Lock(..) => None,
        }
    }
}

/// How a barrier treats pages that one node alone wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrierKind {
    /// As all others.
    Ordinary,
    /// The writer becomes the page's manager: from then on its writes need no update until somebody asks.
    SingleReadWrite,
}

/// A message; beside it goes the epoch of its sender, which counts for all but `Lost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Asks a lock's manager for it; `seen` is the stamp of the last update that the sender has.
    Acquire {
        /// The lock.
        lock: LockId,
        /// The sender's thread that wants it.
        thread: ThreadId,
        /// Whether others are kept out.
        mode: Mode,
        /// The sender does not wait: the answer may be `Busy`.
        immediately: bool,
        /// Stamp of the newest update that the sender has.
        seen: u64,
    },
    /// A thread of the sender waits no more, and does without the lock.
    Cancel(LockId, ThreadId),
    /// A thread of the sender waits on a condition no more, and takes the lock again.
    Awaken(LockId, ThreadId),
    /// The lock is not to be had at once, or in time, by that thread of the receiver.
    Busy(LockId, ThreadId),
    /// The lock, and what was written under it.
    Grant {
        /// The lock.
        lock: LockId,
        /// The receiver's thread that gets it.
        thread: ThreadId,
        /// How.
        mode: Mode,
        /// Stamp of the newest of the updates.
        stamp: u64,
        /// Lamport time of the last release.
        time: u64,
        /// What the receiver has not seen.
        #[serde(with = "encoding::updates")]
        updates: Vec<Update>,
    },
    /// The manager tells the last holder to grant the lock.
    HandOn {
        /// The lock.
        lock: LockId,
        /// To whom.
        to: NodeId,
        /// To which thread there.
        thread: ThreadId,
        /// How.
        mode: Mode,
        /// Lamport time of the last release.
        time: u64,
    },
    /// Gives an exclusive lock back.
    Release {
        /// The lock.
        lock: LockId,
        /// Lamport time of the release.
        time: u64,
        /// What was written under it; empty where the last holder keeps the log.
        #[serde(with = "encoding::updates")]
        updates: Vec<Update>,
        /// The condition variable to wait on, if any, and the thread that does.
        then_wait: Option<(ConditionId, ThreadId)>,
        /// As in `Acquire`, for the lock that ends the wait.
        seen: u64,
    },
    /// Wakes who waits on a condition variable.
    Signal {
        /// Its lock.
        lock: LockId,
        /// The condition variable.
        condition: ConditionId,
        /// One, or all.
        all: bool,
    },
    /// Updates for a page's manager; one message for each manager.
    Flush(#[serde(with = "encoding::updates")] Vec<Update>),
    /// A node is at the barrier.
    Arrive {
        /// Its time.
        time: u64,
        /// Pages that it wrote to since the last one.
        written: Vec<PageId>,
        /// Exclusive locks that it holds.
        held: Vec<LockId>,
        /// Managers to be moved.
        moves: Vec<Move>,
        /// What kind of barrier.
        kind: BarrierKind,
    },
    /// All nodes are at the barrier.
    Go {
        /// The latest time of all.
        time: u64,
        /// Who wrote to each page.
        written: Vec<(PageId, Vec<NodeId>)>,
        /// Who holds what.
        held: Vec<(LockId, NodeId)>,
        /// Managers from now on.
        moves: Vec<Move>,
        /// What all asked for, else `Ordinary`.
        kind: BarrierKind,
    },
    /// The master of a page for its new manager.
    Master(PageId, #[serde(with = "encoding::contents")] Contents),
    /// Asks for a page, and to have it again, unasked, behind each of the next so many barriers that change it.
    Fetch(PageId, u8),
    /// The page.
    Page(PageId, #[serde(with = "encoding::contents")] Contents),
    /// A node is dead.
    Lost(NodeId),
    /// The sender has crossed its last barrier, and needs nobody any more; nobody gets anything from it.
    Left,
    /// The sender cannot go on without this node, which has left.
    Stranded(NodeId),
    /// Right before `Arrive`: the sender makes this region at the barrier, or would, but for something.
    Region(RegionPlan, Option<Hindrance>),
    /// Right before `Go`: nobody makes a region at this barrier, as not all made the same.
    Refuse(Discord),
}

/// When a message is to be looked at by who gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Now: somebody waits for what comes of it.
    Now,
    /// When its receiver waits for something itself, or else some time: nobody there need be woken for it.
    WhenWaiting,
}

impl Message {
    /// When its receiver needs it: what is for the barrier, not before that; a lock given back, not before somebody waits for it.
    pub(crate) fn urgency(&self) -> Urgency {
        match self {
            Self::Flush(_) | Self::Region(..) | Self::Arrive { .. } | Self::Master(..) => {
                Urgency::WhenWaiting
            }
            Self::Release { then_wait: None, .. } => Urgency::WhenWaiting,
            _ => Urgency::Now,
        }
    }

    /// The memory that it takes, in bytes.
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

    /// Its name, for errors.
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
