//! The shared file: one entry a virtual processor, written by its owner, read by everybody.
//!
//! ```text
//!   byte 0     used: how many entries were ever taken
//!   byte 64    entry 0     an entry belongs to the process that holds the file's lock on its bytes
//!   byte 128   entry 1     wanted, cpu, aside, beat
//!   ...
//! ```
//!
//! Other processes of the user may write anything anywhere. Numbers are therefore checked as they are read ([`Table::claims`]), every
//! loop is bounded by [`ENTRIES_MAX`], and whoever sleeps on a word of the table does so for a bounded time.
#![expect(unsafe_code, reason = "atomic words in a shared mapping")]

use core::ptr;

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::shared_file::SharedFile;

use crate::data::priority::Priority;

/// Most virtual processors of one user.
pub(super) const ENTRIES_MAX: usize = 1023;
const ENTRY_BYTES: usize = 64;
/// Size of the file.
pub(super) const BYTES: usize = (1 + ENTRIES_MAX) * ENTRY_BYTES;
/// An entry whose beat is older counts for nothing: its process was stopped, or is dead.
pub(super) const STALE_NS: u64 = 200_000_000;
/// Stands for a CPU that is not known.
const NO_CPU: u32 = u32::MAX;

const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES && align_of::<Entry>() == ENTRY_BYTES);

/// What one virtual processor publishes.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Entry {
    /// 1 + the level of what it runs, or would run; 0 while it has nothing to run.
    wanted: AtomicU32,
    cpu: AtomicU32,
    /// A futex word: 1 while it stands aside.
    pub(super) aside: AtomicU32,
    /// When its owner last said that it is there.
    beat_ns: AtomicU64,
}

/// A checked reading of an entry that wants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    /// Which entry's.
    pub(super) index: usize,
    pub(super) level: u8,
    pub(super) cpu: usize,
}

impl Entry {
    /// Publishes what it wants to run.
    pub(super) fn want(&self, level: Option<u8>) {
        let wanted = level.map_or(0, |level| 1 + u32::from(level));
        // Ordered before the look at who stands aside; whoever stands aside says so before it looks here.
        self.wanted.store(wanted, Ordering::SeqCst);
    }

    pub(super) fn beat(&self, now_ns: u64) {
        self.beat_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(super) fn move_to(&self, cpu: usize) {
        self.cpu.store(u32::try_from(cpu).unwrap_or(NO_CPU), Ordering::Relaxed);
    }

    pub(super) fn cpu(&self) -> usize {
        self.cpu.load(Ordering::Relaxed) as usize
    }

    /// What it wants, unless that is nothing, nonsense or old.
    fn claim(&self, index: usize, now_ns: u64) -> Option<Claim> {
        let wanted = self.wanted.load(Ordering::SeqCst) as usize;
        let beat_ns = self.beat_ns.load(Ordering::Relaxed);
        let valid =
            (1..=Priority::LEVELS).contains(&wanted) && now_ns.abs_diff(beat_ns) <= STALE_NS;
        valid.then(|| Claim { index, level: (wanted - 1) as u8, cpu: self.cpu() })
    }

    /// Ends its standing aside.
    pub(super) fn rouse(&self) {
        self.aside.store(0, Ordering::SeqCst);
        futex::wake_shared(&self.aside, u32::MAX);
    }

    fn clear(&self) {
        self.want(None);
        self.move_to(usize::MAX);
        self.aside.store(0, Ordering::Relaxed);
    }
}

/// The mapped file. Never unmapped once it is in use.
pub(super) struct Table {
    file: SharedFile,
}

impl Table {
    pub(super) fn new(file: SharedFile) -> Self {
        Self { file }
    }

    /// Goes on without the file, where `address` is in what was mapped of it; tells whether it does.
    pub(super) fn mend(&self, address: usize) -> bool {
        let mapped = self.file.base()..self.file.base() + BYTES;
        mapped.contains(&address) && self.file.replace_by_memory().is_ok()
    }

    fn used(&self) -> &AtomicU32 {
        // SAFETY: the first word of the mapping, which lasts as long as `self`; all access to it is atomic.
        unsafe { &*ptr::with_exposed_provenance(self.file.base()) }
    }

    pub(super) fn entry(&self, index: usize) -> &Entry {
        assert!(index < ENTRIES_MAX, "no such entry");
        let address = self.file.base() + (1 + index) * ENTRY_BYTES;
        // SAFETY: inside the mapping, which lasts as long as `self`, and aligned; an entry has atomic words alone.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }

    /// Makes entry `index` this process's; false while another process, that lives, has it.
    pub(super) fn claim(&self, index: usize) -> bool {
        let locked = self.file.try_lock((1 + index) * ENTRY_BYTES, ENTRY_BYTES);
        if locked != Ok(true) {
            return false;
        }
        self.entry(index).clear();
        self.used().fetch_max(1 + index as u32, Ordering::SeqCst);
        true
    }

    /// Gives an entry of this process back.
    pub(super) fn release(&self, index: usize) {
        self.entry(index).clear();
        // Refused by an injected fault alone: then the entry stays ours until we die.
        let _ours = self.file.unlock((1 + index) * ENTRY_BYTES, ENTRY_BYTES);
    }

    /// The entries that anybody has used.
    fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> + Clone {
        let used = (self.used().load(Ordering::Relaxed) as usize).min(ENTRIES_MAX);
        (0..used).map(|index| (index, self.entry(index)))
    }

    /// What everybody wants, but for entry `own`.
    pub(super) fn claims(
        &self,
        own: usize,
        now_ns: u64,
    ) -> impl Iterator<Item = Claim> + Clone + '_ {
        self.entries()
            .filter(move |(index, _)| *index != own)
            .filter_map(move |(index, entry)| entry.claim(index, now_ns))
    }

    /// How many want to run on `cpu`.
    pub(super) fn count_on(&self, cpu: usize) -> usize {
        self.claims(ENTRIES_MAX, monotonic_ns()).filter(|claim| claim.cpu == cpu).count()
    }

    /// Rouses those who stand aside on `cpu` and want more than `level`.
    pub(super) fn rouse_above(&self, cpu: usize, level: Option<u8>) {
        let floor = level.map_or(0, |level| 1 + u32::from(level));
        for (_, entry) in self.entries() {
            let aside = entry.aside.load(Ordering::SeqCst) != 0;
            if aside && entry.cpu() == cpu && entry.wanted.load(Ordering::Relaxed) > floor {
                entry.rouse();
            }
        }
    }
}

#[cfg(test)]
mod tests;
