//! Which thread notices that a holder sleeps (Blocked), and what is known of the host's scheduling.
//!
//! | source | how it learns | needs | file |
//! |---|---|---|---|
//! | BPF | a BPF program runs at every switch of the host's scheduler, and records when a kernel thread of a runtime stops or continues | `CAP_BPF`, `CAP_PERFMON` | `detect/observer` |
//! | sentinel | it is next in line for the core, so it runs when the holder does not | a pinned holder | `sentinel` |
//! | monitor | checks at intervals | | `monitor` |
//!
//! The monitor and the watcher call [`take_from_sleeper`]. The sentinel nominates a spare thread,
//! which calls [`accept`]. A source says only *when* to check; the check there, repeated behind a
//! claim, decides. The monitor always checks, but rarely if there is another source.
//!
//! Only the BPF source learns what the host does to a thread that does not sleep. These are
//! *Preempted* and *Resumed* of Paper 1, §3.1.2, for reasons of the host (another process wanted
//! the core). They are counted, and a thread that spins for a preempted thread stops spinning.
//!
//! [`take_from_sleeper`]: crate::processor::taking::take_from_sleeper
//! [`accept`]: crate::processor::taking::accept

mod observer;
mod program;
mod watcher;

pub(crate) use observer::Observer;
pub(crate) use watcher::{MapEntry, guard, watch};

use kyocho_sys::scheduling::{affinity, current_cpu};
use kyocho_sys::task::{SystemCallReader, ThreadId};

use crate::data::detection::Detection;
use crate::processor::kernel_thread::KernelThread;
use crate::processor::shared::Shared;

/// The source that the host permits in place of the `wanted` one.
pub(crate) fn settle(wanted: Detection) -> Detection {
    if wanted == Detection::Off {
        return wanted;
    }
    let can_look =
        SystemCallReader::open(ThreadId::current()).is_ok_and(|own| own.asleep().is_ok());
    match wanted {
        _ if !can_look => Detection::Off,
        Detection::Bpf if Observer::get().is_err() => settle(Detection::Auto),
        Detection::Auto if allowed_cpus().is_empty() => Detection::Monitor,
        Detection::Auto => Detection::Sentinel,
        other => other,
    }
}

/// The CPUs of the calling thread, beginning with its present one, so that processes that start at
/// the same time spread over them.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = affinity(ThreadId::current()) else { return Vec::new() };
    let mut cpus: Vec<usize> = set.iter().collect();
    let here = current_cpu();
    let start = cpus.iter().position(|&cpu| cpu == here).unwrap_or(0);
    cpus.rotate_left(start);
    cpus
}

/// The observer for the kernel threads of a runtime, if it uses the BPF source.
pub(crate) fn observer_of(shared: &Shared) -> Option<&'static Observer> {
    if shared.detection == Detection::Bpf { Observer::made() } else { None }
}

/// Makes the host report on the calling kernel thread from now on.
pub(crate) fn enter(thread: &'static KernelThread, shared: &'static Shared) {
    observer_of(shared).inspect(|observer| observer.enlist(thread));
}

/// Called when the calling kernel thread ends.
pub(crate) fn leave(thread: &'static KernelThread, shared: &'static Shared) {
    observer_of(shared).inspect(|observer| observer.delist(thread));
}

/// Map entries for the watchers of `count` virtual processors; `None` if the host does not permit
/// so many.
pub(crate) fn take_map_entries(count: usize) -> Option<Vec<&'static MapEntry>> {
    let observer = Observer::get().ok()?;
    let mut map_entries = Vec::new();
    for _ in 0..count {
        match observer.map_entry() {
            Ok(map_entry) => map_entries.push(map_entry),
            Err(_) => {
                give_back(map_entries);
                return None;
            }
        }
    }
    Some(map_entries)
}

/// Returns map entries for use by the next runtime.
pub(crate) fn give_back(map_entries: Vec<&'static MapEntry>) {
    if let Some(observer) = Observer::made() {
        map_entries.into_iter().for_each(|map_entry| observer.give_back(map_entry));
    }
}
