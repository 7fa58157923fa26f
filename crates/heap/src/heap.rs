//! The shared heap: one for all Lisp threads, precise, mark-region, non-moving.
//!
//! ```text
//! thread --try_cons--> its Cells --refill--> Space (blocks, lines)   collect: Marker over Marks
//! ```
//!
//! Blocks of 32 KiB, lines of 128 bytes; free runs of lines are what a thread's cache takes
//! (paper 4, §5: the cached system call is the taking of cells). A collection begins and ends while every
//! Lisp thread stands at a safepoint; between, marking goes on beside them (`cycle.rs`), unless memory is short or the heap
//! small: then they stand throughout. Several may mark, one on each virtual processor (`marker/sharing.rs`). Allocation itself never collects.
//!
//! **Invariant:** outside `word`, no code turns an address into a pointer.
//! **Invariant:** who takes a value out of a place that the marker looks at, in the heap, in a foreign object or in a top-level location, calls
//! `barrier::overwrite` before. Roots, a thread's stack among them, are noted at a cycle's beginning, and need none.
//! **Invariant:** who takes a value out of an ephemeron, or makes one, calls `barrier::keep`: the collector may be about to find it garbage.
//! **Invariant:** only the owner of a `Cells`, or who it waits for, touches its runs; the collector
//! does while the world is stopped.
//! Lock order: `next_marks`, `caches`, `space`, `foreign`, `statistics`; none is held while Lisp runs.

pub mod barrier;
mod bytes;
pub mod cache_size;
pub mod cells;
mod collection;
pub mod context;
mod cycle;
pub mod ephemerons;
pub mod faults;
pub mod foreign;
mod guardians;
mod literal;
pub mod location;
pub mod marker;
mod marks;
pub mod mutator;
mod notes;
pub mod object;
mod orders;
pub mod pause;
mod poison;
mod pool;
mod space;
mod unrooted;
pub(crate) mod word;

pub use crate::raise::OutOfMemory;
pub use cells::Cells;
pub use collection::{Collection, Dead, Statistics};
pub use context::ThreadContext;
pub use cycle::Cycle;
pub use foreign::ForeignObject;
pub use guardians::Guardian;
pub use marker::Marker;
use marker::Team;
pub use marks::Marks;
pub use mutator::Mutator;
pub use object::Kind;
pub use orders::Orders;
pub use unrooted::{Kept, Spared, Unrooted};

use crate::account::Account;
use crate::value::Value;
use cells::CellWords;
use core::fmt;
use kyocho_sys::mapping::Mapping;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use marks::BLOCK_BYTES;
use orders::Standing;
use space::Space;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many cells a thread takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CellCache {
    /// One message a cell.
    Off,
    /// So many cells a message.
    Fixed(u32),
    /// By the thread's allocation rate.
    #[default]
    Auto,
}

impl fmt::Display for CellCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Fixed(cells) => cells.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// Sizes of a heap.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Blocks in use never exceed this.
    pub bytes_max: usize,
    /// No collection is wanted before so much was taken.
    pub first_collection_bytes: usize,
    /// The next collection is wanted when the heap reaches so many percent of what survived.
    pub growth_percent: usize,
    /// So much is resident from the start, where the host can do that: the first cells of a program
    /// then cost no page faults.
    pub resident_bytes: usize,
    /// Entries of a marker's stack.
    pub mark_stack_max: usize,
    /// How many may help the collector to mark, at a time.
    pub helpers_max: usize,
    /// Objects that a marker scans between two looks at whether others want work.
    pub shared_every: usize,
    /// For tests: collections that nothing but a count asks for.
    pub torture: Option<Torture>,
}

/// How a heap is tortured: a collection is wanted at every `every`-th taking of memory, and freed
/// memory is overwritten with words that are no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torture {
    /// A collection at every so many takings; 1: at each.
    pub every: u64,
    /// How many takings go before the count begins, so that runs differ in which ones they hit.
    pub phase: u64,
    /// Whether collections go on beside the threads.
    pub beside: bool,
}

impl Torture {
    /// A collection at each taking.
    pub const ALWAYS: Self = Self { every: 1, phase: 0, beside: false };
}

impl Limits {
    /// What is kept of the heap for those who handle that it is full.
    #[must_use]
    pub fn reserve_bytes(&self) -> usize {
        (self.bytes_max / 16).min(8 << 20)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 4 << 30,
            first_collection_bytes: 32 << 20,
            growth_percent: 200,
            resident_bytes: 0,
            mark_stack_max: 1 << 20,
            helpers_max: 0,
            shared_every: 512,
            torture: None,
        }
    }
}

/// No cache gets more at a time than this part of what may be taken before the next collection: in
/// a small heap, or one that is nearly full, caches are small.
const CACHE_FRACTION: usize = 16;

/// Caches of all threads, by slot.
#[derive(Debug, Default)]
struct Caches {
    slots: Vec<Option<Arc<CellWords>>>,
    free: Vec<usize>,
}

/// The shared heap.
#[derive(Debug)]
pub struct Heap {
    limits: Limits,
    foreign: Mutex<Vec<Value>>,
    caches: Mutex<Caches>,
    space: Mutex<Space>,
    /// Those of the cycle that goes on.
    next_marks: Mutex<Arc<Marks>>,
    /// Those who mark, where it is more than one.
    team: Option<Arc<Team>>,
    wanted: AtomicBool,
    /// Collections that nobody waits for go on beside the threads.
    beside: AtomicBool,
    /// What a policy has ordered that lasts.
    standing: Standing,
    statistics: Mutex<Statistics>,
    /// For tests: what befalls who collects.
    pub faults: faults::Faults,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heap {
    /// An empty heap.
    ///
    /// # Errors
    /// When the host has no address space for it.
    pub fn new(limits: Limits) -> io::Result<Arc<Self>> {
        // Twice the limit, so that holes between large objects do not use the addresses up.
        let bytes = limits.bytes_max.max(BLOCK_BYTES).saturating_mul(2);
        let mapping = Mapping::reserve(bytes.next_multiple_of(BLOCK_BYTES))?;
        if limits.resident_bytes > 0 {
            // An older kernel cannot; then pages come at first touch, which is right but slower.
            let _ = mapping.populate(0, limits.resident_bytes.min(mapping.bytes()));
        }
        let trigger = limits.first_collection_bytes;
        Ok(Arc::new(Self {
            limits,
            foreign: Mutex::default(),
            caches: Mutex::default(),
            space: Mutex::new(Space::new(mapping, &limits)),
            next_marks: Mutex::default(),
            team: (limits.helpers_max > 0).then(|| Arc::new(Team::new(&limits))),
            wanted: AtomicBool::new(false),
            beside: AtomicBool::new(limits.torture.is_some_and(|torture| torture.beside)),
            standing: Standing::default(),
            statistics: Mutex::new(Statistics { trigger_bytes: trigger, ..Statistics::default() }),
            faults: faults::Faults::default(),
        }))
    }

    /// The limits it was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// An empty cache, known to the collector until it is dropped. What it is filled with is charged to the account.
    #[must_use]
    pub fn cells(self: &Arc<Self>, account: Option<Arc<Account>>) -> Cells {
        let words = Arc::new(CellWords::of(account));
        let mut caches = lock(&self.caches);
        let slot = caches.free.pop().unwrap_or(caches.slots.len());
        if slot == caches.slots.len() {
            caches.slots.push(None);
        }
        caches.slots[slot] = Some(Arc::clone(&words));
        drop(caches);
        Cells::new(words, slot, Arc::clone(self))
    }

    /// Takes a dropped cache's memory back.
    fn retire(&self, slot: usize, words: &CellWords) {
        let mut caches = lock(&self.caches);
        caches.slots[slot] = None;
        caches.free.push(slot);
        let mut space = lock(&self.space);
        words.drain(|run| {
            if let Some(account) = words.account() {
                account.refund(run.bytes());
            }
            space.give_back(run);
        });
    }

    /// Gives a cache up to `want` cells more, and sees that `need` of them lie side by side. The
    /// cache's owner calls this, or whoever it waits for: the system-call thread, on request.
    ///
    /// # Errors
    /// When a run of `need` cells could not be had within the limit.
    pub fn refill(&self, cells: &Cells, need: usize, want: usize) -> Result<(), OutOfMemory> {
        self.refill_words(cells.words(), need, want)
    }

    /// As [`refill`](Self::refill), of a cache known by its words.
    ///
    /// # Errors
    /// As [`refill`](Self::refill).
    pub fn refill_words(
        &self,
        words: &CellWords,
        need: usize,
        want: usize,
    ) -> Result<(), OutOfMemory> {
        self.refill_from(lock(&self.space), words, need, want)
    }

    /// As [`refill`](Self::refill), but what handlers need when memory is short is left, unless `spends_reserve`.
    fn refill_keeping(
        &self,
        words: &CellWords,
        need: usize,
        want: usize,
        spends_reserve: bool,
    ) -> Result<(), OutOfMemory> {
        let mut space = lock(&self.space);
        if spends_reserve {
            return self.refill_from(space, words, need, want);
        }
        let account = words.account().map_or(usize::MAX, |account| account.room_for_all_bytes());
        let room = self.room_bytes(&space).min(account) / object::GRANULE_BYTES;
        self.admit(&mut space, need <= room)?;
        self.refill_from(space, words, need, want.min(room))
    }

    fn refill_from(
        &self,
        mut space: MutexGuard<'_, Space>,
        words: &CellWords,
        need: usize,
        want: usize,
    ) -> Result<(), OutOfMemory> {
        let room = words.account().map_or(usize::MAX, |account| account.room_bytes());
        if room < need * object::GRANULE_BYTES {
            return Err(OutOfMemory);
        }
        let most = (room.min(space.budget_bytes) / CACHE_FRACTION / object::GRANULE_BYTES)
            .clamp(cache_size::CELLS_MIN, cache_size::CELLS_MAX);
        let before = words.taken_granules();
        let result = space.refill(words, need, want.clamp(1, most));
        if let Some(account) = words.account() {
            let cells = (words.taken_granules() - before) as usize;
            account.take(cells * object::GRANULE_BYTES);
        }
        self.note_taken(&mut space, result.is_err());
        result
    }

    /// Bytes that may be taken before most of the reserve is touched. A quarter of it may be, so that the collection
    /// after the first refusal finds the heap exhausted, whatever the refused object's size was.
    fn room_bytes(&self, space: &Space) -> usize {
        let used = space.held_bytes + space.taken_bytes + self.limits.reserve_bytes() / 4 * 3;
        self.limits.bytes_max.saturating_sub(used)
    }

    fn admit(&self, space: &mut Space, admitted: bool) -> Result<(), OutOfMemory> {
        if admitted {
            return Ok(());
        }
        self.note_taken(space, true);
        Err(OutOfMemory)
    }

    fn take_wide(&self, bytes: usize, spends_reserve: bool) -> Result<usize, OutOfMemory> {
        let mut space = lock(&self.space);
        let fits = bytes <= self.room_bytes(&space);
        self.admit(&mut space, spends_reserve || fits)?;
        let result = space.cut_wide(bytes);
        self.note_taken(&mut space, result.is_err());
        result
    }

    fn take_large(&self, bytes: usize, spends_reserve: bool) -> Result<usize, OutOfMemory> {
        let mut space = lock(&self.space);
        let fits = bytes <= self.room_bytes(&space);
        self.admit(&mut space, spends_reserve || fits)?;
        let result = space.take_large(bytes);
        self.note_taken(&mut space, result.is_err());
        result
    }

    fn note_taken(&self, space: &mut Space, failed: bool) {
        space.takings += 1;
        let due = |torture: Torture| {
            space
                .takings
                .checked_sub(torture.phase)
                .is_some_and(|n| n.is_multiple_of(torture.every))
        };
        let tortured = self.limits.torture.is_some_and(due);
        // What is taken while a cycle goes on is the next one's.
        let due = space.fresh.is_none() && (tortured || space.taken_bytes >= space.budget_bytes);
        if failed || due {
            self.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a collection should run at the next safepoint.
    #[inline]
    #[must_use]
    pub fn collection_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// A collection begins a step: whoever makes it may be killed here, or fail, and the next one is whole.
    #[inline]
    pub fn step(&self) {
        self.faults.step();
    }

    fn register_foreign(&self, value: Value) {
        lock(&self.foreign).push(value);
    }

    /// How many Rust objects it holds.
    #[must_use]
    pub fn foreign_objects(&self) -> usize {
        lock(&self.foreign).len()
    }
}

#[cfg(test)]
mod tests;
