//! The events that the kernel side reports to the user scheduler of a virtual processor (Paper 1,
//! §3.1.2).
//!
//! ```text
//!   Blocked ──► (another kernel thread) Resumed ──► pick … ──► Unblocked ──► pick
//!   Preempted ──► (another kernel thread) Resumed ──► pick …
//!   Changed ──► pick, if another microprocess should run now
//! ```
//!
//! An event is reported before its consequences: *Unblocked* before the microprocess is
//! [enqueued](crate::processor::scheduler::Scheduler::enqueue), *Preempted* likewise, *Blocked*
//! before the *Resumed* of the kernel thread that takes over.
//!
//! The paper's kernel calls the scheduler on the thread that falls asleep. Here the kernel thread
//! that takes the virtual processor over reports the event, before it picks.

use core::fmt;

use crate::data::priority::Priority;
use crate::processor::record::Record;
use crate::processor::scheduler::Entry;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The kernel thread of a running microprocess went to sleep in the kernel.
    Blocked,
    /// The kernel thread of a blocked microprocess woke up, and the microprocess is runnable again.
    Unblocked,
    /// As `Unblocked`, but the running microprocess is more urgent: unblocked and at once
    /// preempted, in one event (§6.2).
    UnblockedPreempted,
    /// A running microprocess was interrupted.
    Preempted,
    /// A kernel thread without a microprocess received the virtual processor.
    Resumed,
    /// The priority, the parameter or the pin of a microprocess was changed, by the microprocess
    /// itself, by another thread or by inheritance.
    Changed,
}

impl EventKind {
    /// The number of kinds.
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

/// The microprocess that is bound to the kernel thread of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The entry of the microprocess.
    pub entry: Entry,
    /// Its priority at the time of the event.
    pub priority: Priority,
    /// Where it stopped. `None` if it is not bound to a kernel thread, which happens only with
    /// *Changed*.
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
    /// The kind of the event.
    pub kind: EventKind,
    /// The index of the virtual processor.
    pub virtual_processor: usize,
    /// The microprocess concerned; `None` for *Resumed*.
    pub bound: Option<Bound>,
}
