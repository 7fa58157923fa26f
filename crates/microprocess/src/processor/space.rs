//! Priorities that hold across address spaces (Paper 1, §3.3.1).
//!
//! The kernel of the paper reads each address space's priorities from a page it shares with it. On
//! an unmodified Linux, the Kyocho processes of one user share one file instead, and each acts on
//! what it reads there:
//!
//! ```text
//!   process A   virtual processor 0 ── entry ─┐
//!               virtual processor 1 ── entry ─┤      one file, mapped by all:
//!   process B   virtual processor 0 ── entry ─┘      the level that each wants to run, and its CPU
//! ```
//!
//! * A switch to a microprocess of another level stores that level in the entry, without a system
//!   call. A switch within one level stores nothing.
//! * A virtual processor that is outranked on its CPU *yields* it: its kernel thread sleeps
//!   until the more urgent one becomes idle or less urgent. It checks this at once when it switches
//!   to a lower level (the paper has a `yield` system call there), and when its monitor finds it
//!   outranked.
//! * A free CPU is better than yielding: the monitor moves the virtual processor there.
//! * A virtual processor that has yielded for a second runs for one time slice. So it does not
//!   starve, and the more urgent one keeps more than 99 %.
//!
//! An entry is an allegation. Its numbers are checked when they are read. By false entries a
//! process gains CPU time, or costs others CPU time, as any process of the same user can with
//! `nice`. A process that stops or dies no longer renews its *beat*, and is ignored after
//! [`STALE_NS`](table::STALE_NS).

use core::fmt;
use std::ffi::CString;
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use kyocho_sys::directory;
use kyocho_sys::shared_file::SharedFile;

use crate::processor::shared::Shared;

mod limits;
mod listing;
mod lost;
mod rank;
mod table;
mod watchdog;

pub(crate) use limits::{Account, Limits};
pub(crate) use listing::{Listing, NOTHING};
use table::Table;
pub use watchdog::OnUnanswered;
pub(crate) use watchdog::Suspicion;

/// Among which processes priorities hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Across all Kyocho processes of the user.
    Processes,
    /// Only within this process: the shared file is not available.
    ThisProcess(io::ErrorKind),
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processes => f.write_str("hold across the Kyocho processes of this user"),
            Self::ThisProcess(why) => {
                write!(
                    f,
                    "hold within this process ({why}: KYOCHO_DIR names the directory to share)"
                )
            }
        }
    }
}

/// This process's view of the shared file.
struct Space {
    table: Table,
    /// The entries of this process. Needed because the file's locks exclude other processes only.
    taken: Mutex<Vec<usize>>,
}

/// The name contains the version of the layout, so processes with different layouts do not share a
/// file.
const FILE: &str = "priorities-1";

static SPACE: OnceLock<Result<Space, io::ErrorKind>> = OnceLock::new();

/// The shared file, opened once in the life of the process.
fn space() -> Result<&'static Space, io::ErrorKind> {
    SPACE.get_or_init(|| open().map_err(|error| error.kind())).as_ref().map_err(|kind| *kind)
}

fn open() -> io::Result<Space> {
    let path = directory::of_user()?.join(FILE);
    let path = CString::new(path.into_os_string().into_encoded_bytes())?;
    let table = Table::new(SharedFile::open(&path, table::BYTES)?);
    lost::prepare();
    Ok(Space { table, taken: Mutex::new(Vec::new()) })
}

/// Among which processes the priorities of this process hold.
pub(crate) fn reach() -> Reach {
    match space() {
        Ok(_) if lost::is_lost() => Reach::ThisProcess(io::ErrorKind::UnexpectedEof),
        Ok(_) => Reach::Processes,
        Err(why) => Reach::ThisProcess(why),
    }
}

/// Repairs a fault at `address`, if it is in the shared file and another program has truncated
/// that. Safe in a signal handler.
fn mend(address: usize) -> bool {
    matches!(SPACE.get(), Some(Ok(space)) if space.table.mend(address))
}

impl Space {
    fn taken(&self) -> MutexGuard<'_, Vec<usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An entry for one virtual processor; `None` if the table is full.
    fn take(&self) -> Option<usize> {
        let mut taken = self.taken();
        let mut free = (0..table::ENTRIES_MAX).filter(|index| !taken.contains(index));
        let index = free.find(|&index| self.table.claim(index))?;
        taken.push(index);
        Some(index)
    }

    fn give_back(&self, index: usize) {
        self.table.release(index);
        self.taken().retain(|&taken| taken != index);
    }
}

/// Takes an entry for each virtual processor of a runtime that is about to start. A virtual
/// processor without one does not take part.
pub(crate) fn join(shared: &Shared) {
    let Ok(space) = space() else { return };
    for vp in shared.vps() {
        if let Some(index) = space.take() {
            vp.listing.occupy(index, vp.cpu());
        }
    }
}

/// Returns the entries of a runtime that has stopped.
pub(crate) fn leave(shared: &Shared) {
    let Ok(space) = space() else { return };
    for index in shared.vps().iter().filter_map(|vp| vp.listing.vacate()) {
        space.give_back(index);
    }
}

/// Sorts the CPUs that a runtime may use: those where the fewest virtual processors of any process
/// want to run come first.
pub(crate) fn spread(cpus: &mut [usize]) {
    if let Ok(space) = space() {
        cpus.sort_by_key(|&cpu| space.table.count_on(cpu));
    }
}
