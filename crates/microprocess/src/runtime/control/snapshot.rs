//! What goes on in an address space, at about one moment.
//!
//! Taken by reading what records show, from any kernel thread: no virtual processor is stopped, no lock taken. Each
//! microprocess is read whole or not at all (its id is the same before and after); two of them may be seen some microseconds apart.

use core::fmt;
use std::{fs, process};

use kyocho_sys::prim::atomic::{Ordering, fence};
use serde::{Deserialize, Serialize};

use super::GlobalId;
use crate::data::statistics::Statistics;
use crate::processor::record::{Reason, Record, State};
use crate::processor::shared::{self, Shared};
use crate::processor::slot;
use crate::processor::vp::Vp;
use crate::protocol::tenure;

/// An address space and its microprocesses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The number of its process.
    pub process: u32,
    /// What it runs.
    pub program: String,
    /// Kernel threads of its runtimes that hold a virtual processor, wait for one or carry a microprocess.
    pub kernel_threads: u32,
    /// What has happened on all of its virtual processors.
    pub counters: Statistics,
    /// Its virtual processors, those of all runtimes.
    pub virtual_processors: Vec<VirtualProcessor>,
    /// Its microprocesses, oldest first.
    pub microprocesses: Vec<Entry>,
    /// How many more there are than were asked for.
    pub left_off: usize,
}

/// A virtual processor in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VirtualProcessor {
    /// Its number in its runtime.
    pub number: usize,
    /// What it runs; `None` while it is idle, or between two.
    pub running: Option<GlobalId>,
    /// Whether it sleeps for want of work.
    pub idle: bool,
    /// What has happened on it.
    pub counters: Statistics,
}

/// A microprocess in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its name among all of the machine.
    pub id: GlobalId,
    /// The name it was given.
    pub name: Option<String>,
    /// What it is doing.
    pub status: Status,
    /// Its priority's level, 0 to 63.
    pub priority: u8,
    /// The virtual processor that it belongs to.
    pub virtual_processor: usize,
    /// What it waits for, where it is waiting.
    pub waits_for: Option<String>,
    /// Who held that when the wait began, where it is a mutex.
    pub held_by: Option<GlobalId>,
    /// How long it has run, in nanoseconds: sampled once a time slice, so what runs shortly shows by chance.
    pub cpu_ns: u64,
    /// How often it got a virtual processor.
    pub switches: u64,
    /// Whether it is one without a stack.
    pub stackless: bool,
}

/// What a microprocess is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// On a virtual processor.
    Running,
    /// In line for one.
    Runnable,
    /// For another microprocess, for input or output, for a point in time.
    Waiting,
    /// Its kernel thread sleeps in the kernel.
    Blocked,
    /// Told to stand still.
    Suspended,
    /// Over; nobody has joined it yet.
    Finished,
    /// Killed in a loop that could not be unwound.
    Abandoned,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Running => "running",
            Self::Runnable => "runnable",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Suspended => "suspended",
            Self::Finished => "finished",
            Self::Abandoned => "abandoned",
        })
    }
}

/// What goes on in this address space; lists at most `entries_max` microprocesses, the oldest. From any kernel thread.
///
/// Some 100 ns a microprocess, and a system call for the program's name.
#[must_use]
pub fn snapshot(entries_max: usize) -> Snapshot {
    let runtimes = shared::all();
    let vps: Vec<&'static Vp> = runtimes.iter().flat_map(|shared| shared.vps()).copied().collect();
    let mut entries: Vec<Entry> = slot::all().filter_map(|record| entry_of(record, &vps)).collect();
    entries.sort_unstable_by_key(|entry| entry.id);
    let left_off = entries.len().saturating_sub(entries_max);
    entries.truncate(entries_max);
    let program = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let kernel_threads = |shared: &&Shared| shared.kernel_threads.load(Ordering::Relaxed);
    Snapshot {
        process: process::id(),
        program: program.trim_end().to_owned(),
        kernel_threads: runtimes.iter().map(kernel_threads).sum(),
        counters: vps.iter().map(|vp| vp.counters.read()).fold(Statistics::default(), |a, b| a + b),
        virtual_processors: vps.iter().map(|vp| processor(vp)).collect(),
        microprocesses: entries,
        left_off,
    }
}

fn global(local: u64) -> GlobalId {
    GlobalId { process: process::id(), local }
}

fn processor(vp: &Vp) -> VirtualProcessor {
    VirtualProcessor {
        number: vp.index,
        running: vp.current.get().map(|record| global(record.id())),
        idle: vp.is_idle(),
        counters: vp.counters.read(),
    }
}

/// What `record` shows, if it is a microprocess of a runtime that runs.
fn entry_of(record: &'static Record, vps: &[&'static Vp]) -> Option<Entry> {
    let state = record.state.get();
    let home = record.home.address();
    let home = vps.iter().find(|vp| core::ptr::eq(**vp, home))?;
    if state == State::Free {
        return None;
    }
    let id = record.id();
    if id == tenure::NOBODY {
        return None;
    }
    fence(Ordering::Acquire);
    let runs = || vps.iter().any(|vp| vp.current.get().is_some_and(|it| core::ptr::eq(it, record)));
    let status = match state {
        State::Free => return None,
        State::Runnable if runs() => Status::Running,
        State::Runnable => Status::Runnable,
        State::Parked if record.orders.is_suspended() => Status::Suspended,
        State::Parked => Status::Waiting,
        State::Blocked => Status::Blocked,
        State::Suspended => Status::Suspended,
        State::Finished => Status::Finished,
        State::Abandoned => Status::Abandoned,
    };
    let waits = state == State::Parked;
    let reason = Some(record.reason.get()).filter(|_| waits);
    let entry = Entry {
        id: global(id),
        name: record.name.get().as_str().map(str::to_owned),
        status,
        priority: record.level(),
        virtual_processor: home.index,
        waits_for: reason.as_ref().map(Reason::to_string),
        held_by: Some(record.held_by.load(Ordering::Relaxed))
            .filter(|&holder| waits && holder != 0)
            .map(global),
        cpu_ns: record.cpu_ns.load(Ordering::Relaxed),
        switches: record.switches.get(),
        stackless: record.class.get() == slot::STACKLESS,
    };
    fence(Ordering::Acquire);
    // Recycled meanwhile: half of it is another's.
    (record.id() == id).then_some(entry)
}
