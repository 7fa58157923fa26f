//! What a program and a node say to each other: layout, calls, events, actions, errors.

use core::fmt;

use crate::address::{ConditionId, LockId, NodeId, PageId, ThreadId};
use crate::lock::Mode;
use crate::message::{BarrierKind, Message, Move};
use crate::page::Contents;
use crate::region::discord::{Discord, Hindrance};
use crate::region::{Misplaced, RegionPlan};
use crate::wire::Nonsense;

/// How long an acquirer waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until it has the lock, or [`Event::TimeUp`].
    Wait,
    /// Not at all.
    Try,
}

/// Whom a signal wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Who waited longest.
    One,
    /// Everybody.
    All,
}

/// What the program asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Takes a lock.
    Acquire(LockId, Mode, Patience),
    /// Gives it back.
    Release(LockId),
    /// Counts all that this node knows of this epoch as written under a lock that it holds exclusively.
    Publish(LockId),
    /// Gives an exclusive lock back, waits for a signal, and takes it again.
    WaitOn(LockId, ConditionId),
    /// Signals who waits; the lock need not be held.
    Signal(LockId, ConditionId, Who),
    /// Waits for all nodes.
    Barrier(BarrierKind),
    /// Waits for all nodes, which make this region with it; where something hinders one, none has it. The caller has room for it.
    Region(RegionPlan, Option<Hindrance>),
    /// Moves a manager at the next barrier.
    Move(Move),
    /// Brings a page that a read or a write missed.
    Fetch(PageId),
}

impl Call {
    /// What the call is about.
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

/// What happens to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A thread of the program calls.
    Call(ThreadId, Call),
    /// A message has come, with the epoch of its sender.
    Message(NodeId, u64, Message),
    /// The time of the program's call of that number (from 1, counted by `step`) is up.
    TimeUp(u64),
    /// A peer is dead.
    PeerLost(NodeId),
    /// A peer's connection ended by a goodbye. One that has not crossed its last barrier is dead.
    PeerLeft(NodeId),
    /// A peer sent bytes that are no message for this node.
    Nonsense(NodeId, Nonsense),
    /// A thread has given up coming to a barrier, as [`crate::Node::lost`] told it.
    Stranded,
    /// A page is watched again after [`Action::Disown`], and was this then.
    Disowned(PageId, Contents),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send a message, with this node's epoch.
    Send(NodeId, u64, Message),
    /// The call of a thread of the program returns.
    Return(ThreadId, Result<Outcome, DsmError>),
    /// The program sees this page so from now on, and what it writes there is told to [`crate::Node::write`] before its next call.
    Show(PageId, Contents),
    /// Where the program can use the page, it sees these words so from now on, by number and value.
    Update(PageId, Vec<(u32, u32)>),
    /// The program cannot use the page before it has called [`Call::Fetch`], unless its copy is here: then it can be shown that, and
    /// [`crate::Node::use_page`] is told so. So are all pages in the beginning, all zeros.
    Hide(PageId),
    /// The program alone has this page: what it writes there need not be told.
    Own(PageId),
    /// What the program writes to a page it owned is told again. To be answered at once, by [`Event::Disowned`].
    Disown(PageId),
}

/// How a call ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// The lock was not to be had, at once or in time.
    Busy,
}

/// What a call was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A lock.
    Lock(LockId),
    /// A page.
    Page(PageId),
    /// A barrier.
    Barrier,
    /// A node that is to manage something.
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

/// What a peer did that no node of this version does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Breach {
    /// It sent bytes that are no message, or one about what the layout does not have.
    Nonsense(Nonsense),
    /// It sent a message of this name that it could not send then.
    IllTimed(&'static str),
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nonsense(why) => why.fmt(f),
            Self::IllTimed(message) => write!(f, "it sent {message}, which it could not send then"),
        }
    }
}

/// Why a call failed; nothing has changed then, unless a peer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DsmError {
    /// There is no such lock, page or node in the layout.
    OutOfRange(Subject),
    /// A lock that this thread does not hold (exclusively, to wait on a condition).
    NotHeld(LockId),
    /// A lock that it holds already.
    AlreadyHeld(LockId),
    /// There cannot be such a region.
    Misplaced(RegionPlan, Misplaced),
    /// Not all nodes have made the same region at the barrier that was crossed: nobody has it, and the program can go on.
    Discord(Discord),
    /// A call has not returned: the thread's last one, or one of any thread where all must stand still, as at a barrier.
    CallOutstanding,
    /// A node is dead; this was waited for, or asked for afterwards. What is in local copies can still be read and saved.
    PeerLost(NodeId, Subject),
    /// The same of a node that has crossed its last barrier and left, as this one has not.
    PeerLeft(NodeId, Subject),
    /// The same of a node that lives and does not keep to the protocol; nothing is taken from anybody since.
    PeerBroke(NodeId, Breach, Subject),
}

impl fmt::Display for DsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(subject) => write!(f, "{subject} is outside of the layout"),
            Self::NotHeld(LockId(lock)) => write!(f, "lock {lock} is not held: acquire it first"),
            Self::AlreadyHeld(LockId(lock)) => write!(f, "lock {lock} is held already"),
            Self::Misplaced(plan, why) => write!(f, "there cannot be {plan}: {why}"),
            Self::Discord(why) => why.fmt(f),
            Self::CallOutstanding => write!(f, "a call of this node has not returned"),
            Self::PeerLost(NodeId(node), subject) => {
                write!(f, "node {node} is dead: {subject} cannot be had; save and exit")
            }
            Self::PeerLeft(NodeId(node), subject) => {
                write!(f, "node {node} has left: {subject} cannot be had; save and exit")
            }
            Self::PeerBroke(NodeId(node), breach, subject) => write!(
                f,
                "node {node} broke the protocol: {breach}; {subject} cannot be had; save and exit"
            ),
        }
    }
}

impl core::error::Error for DsmError {}
