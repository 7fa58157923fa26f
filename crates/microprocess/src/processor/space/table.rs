//! The shared file: one entry for each virtual processor, written by its owner, read by all.
//!
//! ```text
//!   byte 0     used: how many entries were ever taken
//!   byte 64    entry 0     an entry belongs to the process that holds the file lock on its bytes
//!   byte 128   entry 1     wanted, cpu, yielded, beat
//!   ...
//! ```
//!
//! Other processes of the user may write anything anywhere. Numbers are therefore checked as they
//! are read ([`Table::claims`]). Every loop is bounded by [`ENTRIES_MAX`], and every sleep on a
//! word of the table is bounded in time.
#![expect(unsafe_code, reason = "atomic words in a shared mapping")]

use core::ptr;

use kyocho_sys::futex;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use kyocho_sys::shared_file::SharedFile;

use crate::data::priority::Priority;

/// The most virtual processors of one user.
pub(super) const ENTRIES_MAX: usize = 1023;
const ENTRY_BYTES: usize = 64;
/// Size of the file.
pub(super) const BYTES: usize = (1 + ENTRIES_MAX) * ENTRY_BYTES;
/// An entry whose beat is older is ignored: its process was stopped or is dead.
pub(super) const STALE_NS: u64 = 200_000_000;
/// The value for an unknown CPU.
const NO_CPU: u32 = u32::MAX;

const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES && align_of::<Entry>() == ENTRY_BYTES);

/// The entry of one virtual processor.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Entry {
    /// 1 + the level that it runs or wants to run; 0 if it has nothing to run.
    wanted: AtomicU32,
    cpu: AtomicU32,
    /// A futex word: 1 while it yields its CPU.
    pub(super) yielded: AtomicU32,
    /// When its owner last renewed the entry.
    beat_ns: AtomicU64,
}

/// A checked copy of an entry that wants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    /// The index of the entry.
    pub(super) index: usize,
    pub(super) level: u8,
    pub(super) cpu: usize,
}

impl Entry {
    /// Publishes the level that it wants to run.
    pub(super) fn want(&self, level: Option<u8>) {
        let wanted = level.map_or(0, |level| 1 + u32::from(level));
        // Stored before the others' `yielded` is read. A holder that yields its CPU sets `yielded`
        // before it reads this word.
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

    /// What it wants to run, unless that is nothing, invalid or out of date.
    fn claim(&self, index: usize, now_ns: u64) -> Option<Claim> {
        let wanted = self.wanted.load(Ordering::SeqCst) as usize;
        let beat_ns = self.beat_ns.load(Ordering::Relaxed);
        let valid =
            (1..=Priority::LEVELS).contains(&wanted) && now_ns.abs_diff(beat_ns) <= STALE_NS;
        valid.then(|| Claim { index, level: (wanted - 1) as u8, cpu: self.cpu() })
    }

    /// Wakes the holder, which has yielded its CPU.
    pub(super) fn rouse(&self) {
        self.yielded.store(0, Ordering::SeqCst);
        futex::wake_shared(&self.yielded, u32::MAX);
    }

    fn clear(&self) {
        self.want(None);
        self.move_to(usize::MAX);
        self.yielded.store(0, Ordering::Relaxed);
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

    /// Replaces the file by memory if `address` is in the mapping; returns whether it did.
    pub(super) fn mend(&self, address: usize) -> bool {
        let mapped = self.file.base()..self.file.base() + BYTES;
        mapped.contains(&address) && self.file.replace_by_memory().is_ok()
    }

    fn used(&self) -> &AtomicU32 {
        // SAFETY: the first word of the mapping, which lives as long as `self`. All access to it is
        // atomic.
        unsafe { &*ptr::with_exposed_provenance(self.file.base()) }
    }

    pub(super) fn entry(&self, index: usize) -> &Entry {
        assert!(index < ENTRIES_MAX, "no such entry");
        let address = self.file.base() + (1 + index) * ENTRY_BYTES;
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned. An entry has only
        // atomic words.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }

    /// Takes entry `index` for this process; `false` if a living process has it.
    pub(super) fn claim(&self, index: usize) -> bool {
        let locked = self.file.try_lock((1 + index) * ENTRY_BYTES, ENTRY_BYTES);
        if locked != Ok(true) {
            return false;
        }
        self.entry(index).clear();
        self.used().fetch_max(1 + index as u32, Ordering::SeqCst);
        true
    }

    /// Returns an entry of this process.
    pub(super) fn release(&self, index: usize) {
        self.entry(index).clear();
        // Only an injected fault makes this fail. The entry is then kept until the process ends.
        let _ours = self.file.unlock((1 + index) * ENTRY_BYTES, ENTRY_BYTES);
    }

    /// The entries that were ever used.
    fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> + Clone {
        let used = (self.used().load(Ordering::Relaxed) as usize).min(ENTRIES_MAX);
        (0..used).map(|index| (index, self.entry(index)))
    }

    /// The claims of all entries but `own`.
    pub(super) fn claims(
        &self,
        own: usize,
        now_ns: u64,
    ) -> impl Iterator<Item = Claim> + Clone + '_ {
        self.entries()
            .filter(move |(index, _)| *index != own)
            .filter_map(move |(index, entry)| entry.claim(index, now_ns))
    }

    /// How many virtual processors want to run on `cpu`.
    pub(super) fn count_on(&self, cpu: usize) -> usize {
        self.claims(ENTRIES_MAX, monotonic_ns()).filter(|claim| claim.cpu == cpu).count()
    }

    /// Wakes the holders that have yielded `cpu` and want a level above `level`.
    pub(super) fn rouse_above(&self, cpu: usize, level: Option<u8>) {
        let floor = level.map_or(0, |level| 1 + u32::from(level));
        for (_, entry) in self.entries() {
            let has_yielded = entry.yielded.load(Ordering::SeqCst) != 0;
            if has_yielded && entry.cpu() == cpu && entry.wanted.load(Ordering::Relaxed) > floor {
                entry.rouse();
            }
        }
    }
}

#[cfg(test)]
mod tests;
