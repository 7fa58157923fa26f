//! The state of an address space, at about one moment.
//!
//! It is made by reading fields of records from any kernel thread: no virtual processor is stopped,
//! and no lock of a microprocess is taken. Each microprocess is read consistently or left out (its
//! id must be the same before and after). Two microprocesses may be read some microseconds apart.

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
    /// The process number.
    pub process: u32,
    /// The name of its program.
    pub program: String,
    /// Kernel threads of its runtimes that hold a virtual processor, wait for one or carry a
    /// microprocess.
    pub kernel_threads: u32,
    /// The counts of all its virtual processors together.
    pub counters: Statistics,
    /// The virtual processors of all its runtimes.
    pub virtual_processors: Vec<VirtualProcessor>,
    /// Its microprocesses, oldest first.
    pub microprocesses: Vec<Entry>,
    /// How many microprocesses were left out because of the limit.
    pub left_off: usize,
}

/// A virtual processor in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VirtualProcessor {
    /// Its index in its runtime.
    pub number: usize,
    /// The running microprocess; `None` if it is idle, or between two.
    pub running: Option<GlobalId>,
    /// Whether its holder sleeps because it has no work.
    pub idle: bool,
    /// Spare kernel threads: they wait to take it over when its holder blocks. There are more of
    /// them while the host often blocks its holders.
    pub spares: u32,
    /// The counts of this virtual processor.
    pub counters: Statistics,
}

/// A microprocess in a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its global id.
    pub id: GlobalId,
    /// Its name.
    pub name: Option<String>,
    /// Its state.
    pub status: Status,
    /// The level of its priority, 0 to 63.
    pub priority: u8,
    /// The virtual processor to which it belongs.
    pub virtual_processor: usize,
    /// What it waits for, if it waits.
    pub waits_for: Option<String>,
    /// If it waits for a mutex: the holder when the wait began.
    pub held_by: Option<GlobalId>,
    /// Its CPU time in nanoseconds. It is sampled once a time slice, so short runs are counted only
    /// by chance.
    pub cpu_ns: u64,
    /// How often it was given a virtual processor.
    pub switches: u64,
    /// Whether it is stackless.
    pub stackless: bool,
}

/// The state of a microprocess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// Runs on a virtual processor.
    Running,
    /// Waits for a virtual processor.
    Runnable,
    /// Waits for another microprocess, for input or output, or for a point in time.
    Waiting,
    /// Its kernel thread sleeps in the kernel.
    Blocked,
    /// Suspended by an order.
    Suspended,
    /// Ended, and not joined yet.
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

/// A snapshot of this address space, with the oldest `entries_max` microprocesses. May be called
/// from any kernel thread.
///
/// Costs some 100 ns for each microprocess, and a system call for the program's name.
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
        spares: vp.pool.size(),
        counters: vp.counters.read(),
    }
}

/// The entry of `record`, if it is a microprocess of a running runtime.
fn entry_of(record: &'static Record, vps: &[&'static Vp]) -> Option<Entry> {
    let state = record.state.get();
    let home = record.home.address();
    let home = vps.iter().find(|vp| core::ptr::eq(**vp, home))?;
    if state == State::Free {
        return None;
    }
    let id = record.id();
    if id == tenure::NO_ID {
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
    // If it was recycled meanwhile, half of the entry belongs to another microprocess.
    (record.id() == id).then_some(entry)
}
