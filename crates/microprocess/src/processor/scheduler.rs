//! The trait of a user scheduler, and what it sees: the part that virtual processors call.
//!
//! The policies, and their installation: [`policy::scheduler`](crate::policy::scheduler).

use core::fmt;

use crate::data::priority::Priority;
pub use crate::processor::event::{Bound, Event, EventKind, Registers};

mod entry;

pub use entry::Entry;
pub(crate) use entry::{Ready, Scheduling};

/// Why an entry is enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arrival {
    /// It is new.
    Spawned,
    /// It was woken, or its time limit passed.
    Woken,
    /// Its kernel thread woke from a sleep in the kernel.
    Unblocked,
    /// It yielded.
    Yielded,
    /// Its time slice is over.
    SliceOver,
    /// It ran or was about to run, but a more urgent one goes first; it has time left.
    Outranked,
    /// It comes from another virtual processor, or from the scheduler that was installed before.
    Moved,
    /// Its priority or its parameter changed while it was queued.
    Changed,
}

/// Whether the time slice of the running microprocess is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// It has time left.
    Left,
    /// It has run for [`Scheduler::slice_ns`] or longer.
    Over,
}

/// How long microprocesses run before they give up the virtual processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Shortly, or it is not known. A waiting microprocess may be taking turns with the running
    /// one, and such a pair runs best on one virtual processor.
    Short,
    /// Long enough that a waiting microprocess gains by another virtual processor: a time slice is
    /// over, or long runs were observed.
    Long,
}

/// The demand of idle virtual processors for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// How many microprocesses are runnable here, without the running one.
    pub runnable: usize,
    /// How many virtual processors are idle.
    pub idle: usize,
    /// How long microprocesses run here.
    pub runs: Runs,
}

/// A user scheduler: it decides which microprocess runs next on one virtual processor.
pub trait Scheduler: Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// `entry` is runnable. It is in no queue of this scheduler.
    fn enqueue(&mut self, entry: Entry, arrival: Arrival, now_ns: u64);

    /// Removes and returns the entry that runs next. There must be one as long as more entries were
    /// enqueued than picked, given and removed.
    fn pick(&mut self, now_ns: u64) -> Option<Entry>;

    /// Removes `entry`, which was enqueued and neither picked nor given since.
    fn remove(&mut self, entry: Entry);

    /// The priority of the most urgent entry, for comparison with other virtual processors and
    /// processes.
    fn best(&self) -> Option<Priority>;

    /// Whether an enqueued entry should run instead of `running`.
    fn preempts(&self, running: Entry, slice: Slice, now_ns: u64) -> bool;

    /// How long `entry`, which was just picked, runs while others wait; between 1 ms and 1 s.
    fn slice_ns(&self, _entry: Entry) -> u64 {
        crate::data::slice::SLICE_NS
    }

    /// `entry` had the virtual processor for `ran_ns`. Called when it leaves, before it is enqueued
    /// again, and when its slice is over.
    fn charge(&mut self, _entry: Entry, _ran_ns: u64, _now_ns: u64) {}

    /// Reports an event of the kernel side.
    fn event(&mut self, _event: &Event, _now_ns: u64) {}

    /// How many entries to move to idle virtual processors. By default: as many as the built-in
    /// scheduler moves.
    fn surplus(&self, demand: Demand) -> usize {
        crate::processor::balance::share(demand.runnable, demand.idle, demand.runs)
    }

    /// Removes and returns an entry for another virtual processor, which must not be
    /// [pinned](Entry::is_pinned). By default: the next entry, if it may move.
    fn give(&mut self, now_ns: u64) -> Option<Entry> {
        let next = self.pick(now_ns)?;
        if next.is_pinned() {
            self.enqueue(next, Arrival::Outranked, now_ns);
            return None;
        }
        Some(next)
    }

    /// Whether a virtual processor that becomes idle asks a busy one for work. Otherwise it waits
    /// until busy ones notice.
    fn seeks_work(&self) -> bool {
        false
    }
}

/// Why a user scheduler was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// It picked or gave an entry that is not runnable on this virtual processor, or gave away a
    /// pinned entry.
    NotRunnable,
    /// It picked nothing, or reported no most urgent entry, although entries were enqueued.
    Lost,
    /// It panicked, perhaps because it called something that suspends.
    Panicked,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRunnable => "picked an entry that is not runnable there",
            Self::Lost => "picked no entry although one was runnable",
            Self::Panicked => "panicked",
        })
    }
}
