//! What a user scheduler is, and what it sees: the part that virtual processors call.
//!
//! The policies themselves, and how one is installed: [`policy::scheduler`](crate::policy::scheduler).

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
    /// What it waited for has come, or the time is over.
    Woken,
    /// Its kernel thread came back from a sleep in the kernel.
    Unblocked,
    /// It lets others run first.
    Yielded,
    /// Its time slice is over.
    SliceOver,
    /// It ran or was to run, and something else goes first; it has time left.
    Outranked,
    /// It comes from another virtual processor, or from the scheduler that was here before.
    Moved,
    /// Its priority or its parameter was changed while it was queued.
    Changed,
}

/// Whether the time slice of what runs is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slice {
    /// It has time left.
    Left,
    /// It has run for as long as [`Scheduler::slice_ns`] said, or longer.
    Over,
}

/// How long whoever runs keeps the virtual processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// So short, or perhaps so short, that who waits may be about to take turns with it: two such microprocesses are better together.
    Short,
    /// Long enough that who waits gains by another virtual processor: its time slice is over, or it was watched.
    Long,
}

/// What idle virtual processors would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// How many are runnable here, without the one that runs.
    pub runnable: usize,
    /// How many virtual processors are idle.
    pub idle: usize,
    /// How long those who run here keep the virtual processor.
    pub runs: Runs,
}

/// A user scheduler: it decides who runs next on one virtual processor.
pub trait Scheduler: Send {
    /// What it is called in reports.
    fn name(&self) -> &'static str;

    /// `entry` is runnable. It is in no queue of this scheduler.
    fn enqueue(&mut self, entry: Entry, arrival: Arrival, now_ns: u64);

    /// Takes out the entry that runs next. There must be one as long as more were enqueued than picked, given and removed.
    fn pick(&mut self, now_ns: u64) -> Option<Entry>;

    /// Takes out `entry`, which was enqueued and neither picked nor given since.
    fn remove(&mut self, entry: Entry);

    /// The priority of the most urgent entry, for whoever compares virtual processors or address spaces.
    fn best(&self) -> Option<Priority>;

    /// Whether an enqueued entry should run instead of `running`.
    fn preempts(&self, running: Entry, slice: Slice, now_ns: u64) -> bool;

    /// How long `entry`, which was just picked, runs while others wait; between 1 ms and 1 s.
    fn slice_ns(&self, _entry: Entry) -> u64 {
        crate::data::slice::SLICE_NS
    }

    /// `entry` had the virtual processor for `ran_ns`. Told when it leaves, before it is enqueued again, and when its slice is over.
    fn charge(&mut self, _entry: Entry, _ran_ns: u64, _now_ns: u64) {}

    /// Something happened that the kernel side knows.
    fn event(&mut self, _event: &Event, _now_ns: u64) {}

    /// How many entries to give to virtual processors that are idle. Otherwise: even shares.
    fn surplus(&self, demand: Demand) -> usize {
        crate::processor::balance::share(demand.runnable, demand.idle, demand.runs)
    }

    /// Takes out an entry for another virtual processor: one that is not [pinned](Entry::is_pinned). Otherwise: the next, if that
    /// can move.
    fn give(&mut self, now_ns: u64) -> Option<Entry> {
        let next = self.pick(now_ns)?;
        if next.is_pinned() {
            self.enqueue(next, Arrival::Outranked, now_ns);
            return None;
        }
        Some(next)
    }

    /// Whether a virtual processor that falls idle asks a busy one for work; otherwise it waits for busy ones to notice.
    fn seeks_work(&self) -> bool {
        false
    }
}

/// Why a user scheduler lost its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// It picked or gave what is not runnable on this virtual processor, or a pinned entry to another one.
    NotRunnable,
    /// It picked nothing although entries were enqueued.
    Lost,
    /// It panicked, perhaps because it called something that suspends.
    Panicked,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRunnable => "picked what is not runnable there",
            Self::Lost => "picked nothing although something was runnable",
            Self::Panicked => "panicked",
        })
    }
}
