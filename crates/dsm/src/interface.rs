//! The interface between a program and its node: calls, events, actions, errors.

use core::fmt;

use crate::address::{ConditionId, LockId, NodeId, PageId, ThreadId};
use crate::lock::Mode;
use crate::message::{BarrierKind, Message, Move};
use crate::page::Contents;
use crate::region::mismatch::{RegionFailure, RegionMismatch};
use crate::region::{PlacementError, RegionPlan};
use crate::wire::InvalidMessage;

/// How long a thread waits for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPolicy {
    /// Until it has the lock, or until [`Event::TimeUp`].
    Wait,
    /// Not at all.
    Try,
}

/// Which threads a signal wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiters {
    /// The thread that has waited longest.
    One,
    /// All of them.
    All,
}

/// A call of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Takes a lock.
    Acquire(LockId, Mode, WaitPolicy),
    /// Releases a lock.
    Release(LockId),
    /// Adds all updates of this epoch that this node knows to a lock that it holds exclusively.
    Publish(LockId),
    /// Releases an exclusive lock, waits for a signal, and acquires the lock again.
    WaitOn(LockId, ConditionId),
    /// Signals threads that wait on a condition. The caller need not hold the lock.
    Signal(LockId, ConditionId, Waiters),
    /// Waits for all nodes.
    Barrier(BarrierKind),
    /// Waits for all nodes, each of which creates this region. If one node cannot, no node has it.
    /// The caller has reserved the memory, or tells why it could not.
    Region(RegionPlan, Option<RegionFailure>),
    /// Moves a lock or a page to another manager at the next barrier.
    Move(Move),
    /// Fetches a page that is absent.
    Fetch(PageId),
}

impl Call {
    /// What the call concerns.
    pub(crate) fn subject(self) -> Subject {
        match self {
            Self::Acquire(lock, ..)
            | Self::Release(lock)
            | Self::Publish(lock)
            | Self::WaitOn(lock, _)
            | Self::Signal(lock, ..)
            | Self::Move(Move::Lock(lock, _)) => Subject::Lock(lock),
            Self::Move(Move::Page(page, _)) | Self::Fetch(page) => Subject::Page(page),
            Self::Barrier(_) | Self::Region(..) => Subject::Barrier,
        }
    }

    /// Whether it waits for all nodes.
    pub(crate) fn is_barrier(self) -> bool {
        matches!(self, Self::Barrier(_) | Self::Region(..))
    }
}

/// An event at a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A thread of the program calls.
    Call(ThreadId, Call),
    /// A message has arrived, with the epoch of its sender.
    Message(NodeId, u64, Message),
    /// The time limit of the program's call with this number has expired. Calls are numbered by
    /// `step`, from 1.
    TimeUp(u64),
    /// A peer is dead.
    PeerLost(NodeId),
    /// A peer has closed its connection with a goodbye. It counts as dead if it has not crossed its
    /// last barrier.
    PeerLeft(NodeId),
    /// A peer has sent bytes that are no valid message for this node.
    InvalidMessage(NodeId, InvalidMessage),
    /// A thread no longer comes to a barrier, because [`crate::Node::lost`] has reported a loss.
    Stranded,
    /// The answer to [`Action::Disown`]: the page is watched again, and had these contents.
    Disowned(PageId, Contents),
}

/// What a node asks its runtime to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Sends a message, with this node's epoch.
    Send(NodeId, u64, Message),
    /// A call of a thread of the program returns.
    Return(ThreadId, Result<Outcome, DsmError>),
    /// The program sees this page from now on. Before its next call, the runtime passes the
    /// program's writes to this page to [`crate::Node::write`].
    Show(PageId, Contents),
    /// The program sees these words from now on (index and value), if it can access the page.
    Update(PageId, Vec<(u32, u32)>),
    /// The program cannot access the page. If a copy is present, the runtime may show it and call
    /// [`crate::Node::use_page`]; otherwise the program must call [`Call::Fetch`]. All pages start
    /// like this, and are zero.
    Hide(PageId),
    /// No other node has this page: the program's writes to it are not recorded.
    Own(PageId),
    /// The program's writes to an owned page are recorded again. The runtime answers at once with
    /// [`Event::Disowned`].
    Disown(PageId),
}

/// The result of a successful call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The call has completed.
    Done,
    /// The lock was not available at once, or not in time.
    Busy,
}

/// What a call concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A lock.
    Lock(LockId),
    /// A page.
    Page(PageId),
    /// A barrier.
    Barrier,
    /// A node that is to become a manager.
    Node(NodeId),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(LockId(lock)) => write!(f, "lock {lock}"),
            Self::Page(PageId(page)) => write!(f, "page {page}"),
            Self::Barrier => write!(f, "the barrier"),
            Self::Node(NodeId(node)) => write!(f, "node {node}"),
        }
    }
}

/// A violation of the protocol by a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolViolation {
    /// It sent bytes that are no valid message, or a message that names something outside of the
    /// layout.
    InvalidMessage(InvalidMessage),
    /// It sent a message of this name at a time when it could not.
    IllTimed(&'static str),
}

impl fmt::Display for ProtocolViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidMessage(why) => why.fmt(f),
            Self::IllTimed(message) => write!(f, "it sent {message}, which it could not send then"),
        }
    }
}

/// Why a call failed. The node's state is as before, unless a peer was lost or a barrier was
/// crossed ([`Self::RegionMismatch`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DsmError {
    /// The layout has no such lock, page or node.
    OutOfRange(Subject),
    /// The thread does not hold the lock; to wait on a condition, it must hold it exclusively.
    NotHeld(LockId),
    /// The thread already holds the lock.
    AlreadyHeld(LockId),
    /// There can be no such region.
    Misplaced(RegionPlan, PlacementError),
    /// The nodes did not create the same region at a barrier. No node has it, and the program can
    /// continue.
    RegionMismatch(RegionMismatch),
    /// A call is outstanding: an earlier call of this thread, or, at a barrier, a call of any
    /// thread.
    CallOutstanding,
    /// A node is dead, and this needs it. Local copies can still be read and saved.
    PeerLost(NodeId, Subject),
    /// A node has crossed its last barrier and left, and this needs it.
    PeerLeft(NodeId, Subject),
    /// A node has violated the protocol, and this needs it. All later messages are ignored.
    PeerBroke(NodeId, ProtocolViolation, Subject),
}

impl fmt::Display for DsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(subject) => write!(f, "{subject} is outside of the layout"),
            Self::NotHeld(LockId(lock)) => write!(f, "lock {lock} is not held: acquire it first"),
            Self::AlreadyHeld(LockId(lock)) => write!(f, "lock {lock} is held already"),
            Self::Misplaced(plan, why) => write!(f, "cannot create {plan}: {why}"),
            Self::RegionMismatch(why) => why.fmt(f),
            Self::CallOutstanding => write!(f, "a call of this node has not returned"),
            Self::PeerLost(NodeId(node), subject) => {
                write!(f, "node {node} is dead: {subject} is not available; save and exit")
            }
            Self::PeerLeft(NodeId(node), subject) => {
                write!(f, "node {node} has left: {subject} is not available; save and exit")
            }
            Self::PeerBroke(NodeId(node), breach, subject) => write!(
                f,
                "node {node} broke the protocol: {breach}; {subject} is not available; save and exit"
            ),
        }
    }
}

impl core::error::Error for DsmError {}
