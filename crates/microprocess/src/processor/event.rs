//! What the kernel side tells the user scheduler of a virtual processor (Paper 1, §3.1.2).
//!
//! ```text
//!   Blocked ──► (another kernel thread) Resumed ──► pick … ──► Unblocked ──► pick
//!   Preempted ──► (another kernel thread) Resumed ──► pick …
//!   Changed ──► pick, if somebody else should run now
//! ```
//!
//! An event is told before what follows from it: *Unblocked* before the microprocess is [enqueued](crate::processor::scheduler::Scheduler::enqueue),
//! *Preempted* likewise, *Blocked* before the *Resumed* of the kernel thread that goes on.
//!
//! The paper's kernel calls the scheduler on the very thread that falls asleep. Ours is told by the kernel thread that
//! takes the virtual processor over, before it picks anything.

use core::fmt;

use crate::data::priority::Priority;
use crate::processor::record::Record;
use crate::processor::scheduler::Entry;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The kernel thread of a running microprocess went to sleep in the kernel.
    Blocked,
    /// It came back, and the microprocess is runnable again.
    Unblocked,
    /// The same, but what runs there is more urgent: unblocked and at once preempted, in one event (§6.2).
    UnblockedPreempted,
    /// A running microprocess was stopped where it was.
    Preempted,
    /// A kernel thread without a microprocess got the virtual processor.
    Resumed,
    /// The priority or the parameter of a microprocess was changed from outside.
    Changed,
}

impl EventKind {
    /// How many kinds there are.
    pub const COUNT: usize = 6;
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blocked => "blocked",
            Self::Unblocked => "unblocked",
            Self::UnblockedPreempted => "unblocked and preempted",
            Self::Preempted => "preempted",
            Self::Resumed => "resumed",
            Self::Changed => "changed",
        })
    }
}

/// Where the microprocess of an event stopped in user mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    /// The address of the instruction.
    pub instruction: usize,
    /// The stack pointer.
    pub stack: usize,
}

/// The microprocess bound to the kernel thread of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Which.
    pub entry: Entry,
    /// Its priority then.
    pub priority: Priority,
    /// Where it stopped; `None` where it is not bound to a kernel thread, which only *Changed* knows.
    pub registers: Option<Registers>,
}

impl Bound {
    pub(crate) fn new(record: &'static Record) -> Self {
        Self {
            entry: Entry::of(record),
            priority: Priority::new(record.level()).unwrap_or_default(),
            registers: record.bound.get().map(|thread| thread.registers.get()),
        }
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To which virtual processor.
    pub virtual_processor: usize,
    /// To whom; `None` for *Resumed*.
    pub bound: Option<Bound>,
}
