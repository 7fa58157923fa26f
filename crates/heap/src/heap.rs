//! The shared heap. One heap serves all Lisp threads: precise, mark-region, non-moving.
//!
//! ```text
//! thread --try_cons--> its Cells --refill--> Space (blocks, lines)   collect: Marker over Marks
//! ```
//!
//! Blocks have 32 KiB, lines 128 bytes. A thread's cache takes free runs of lines (paper 4, §5: the
//! cached system call is the taking of cells). Every Lisp thread is at a safepoint when a
//! collection begins and when its marking ends. Marking and the sweep are concurrent with the
//! threads (`cycle.rs`). If memory is short or the heap is small, the threads are stopped
//! throughout. Several markers may run, one on each virtual processor (`marker/sharing.rs`).
//! Allocation itself never collects.
//!
//! **Invariant:** outside `word`, no code turns an address in the heap into a pointer.
//! **Invariant:** code that removes a value from a traced place calls `barrier::overwrite` first.
//! Traced places are heap objects, foreign objects and top-level locations. Roots, including a
//! thread's stack, are recorded when a cycle begins, and need no barrier.
//! **Invariant:** code that reads a value from an ephemeron, or makes an ephemeron, calls
//! `barrier::keep`: the collector might be about to find the value garbage.
//! **Invariant:** while the world runs, only the owner of a `Cells`, or the thread that the owner
//! waits for, accesses its runs. While the world is stopped, only the collector does.
//! Lock order: `next_marks`, `caches`, `space`, `foreign`, `statistics`. No thread runs Lisp code
//! while it holds one of them. The collector holds `next_marks` during a whole cycle.

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
pub mod pace;
pub mod pause;
mod poison;
mod pool;
mod space;
mod unrooted;
pub(crate) mod word;

pub use crate::raise::OutOfMemory;
pub use cells::Cells;
pub use collection::{Collection, Dead, Statistics, Unswept};
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
pub use pace::Pace;
pub use unrooted::{Kept, KeptValues, Unrooted};

use crate::account::Account;
use crate::value::Value;
use cells::CellWords;
use core::fmt;
use kyocho_sys::mapping::Mapping;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU8, Ordering};
use marks::BLOCK_BYTES;
use orders::LastingOrders;
use space::Space;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many cells a thread takes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CellCache {
    /// One cell.
    Off,
    /// A fixed number of cells.
    Fixed(u32),
    /// Chosen by the thread's allocation rate.
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

/// Sizes and limits of a heap.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of bytes of blocks in use.
    pub bytes_max: usize,
    /// Bytes to be taken before the first collection is requested, and at least before each later
    /// one. Less if the limit is near.
    pub first_collection_bytes: usize,
    /// The next collection is requested when the heap reaches this percentage of the surviving
    /// bytes.
    pub growth_percent: usize,
    /// Bytes that are resident from the start, if the host supports that. A program's first cells
    /// then cause no page faults.
    pub resident_bytes: usize,
    /// Maximum number of entries of a marker's stack.
    pub mark_stack_max: usize,
    /// Number of helpers among which marking is divided; 0 if the maker marks alone.
    pub helpers_max: usize,
    /// Objects that a marker scans between two checks whether other markers need work.
    pub shared_every: usize,
    /// For tests: collections at fixed counts of requests.
    pub torture: Option<Torture>,
}

/// Torture of a heap: a collection is requested at every `every`-th taking of memory. Freed memory
/// is overwritten with words that are not values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torture {
    /// The number of takings from one collection to the next; 1 means each.
    pub every: u64,
    /// Takings before the count begins. It makes runs differ in which takings are hit.
    pub phase: u64,
    /// Whether collections are concurrent with the threads.
    pub concurrent: bool,
}

impl Torture {
    /// A collection at each taking.
    pub const ALWAYS: Self = Self { every: 1, phase: 0, concurrent: false };
}

impl Limits {
    /// Memory kept for handlers of an out-of-memory error.
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

/// Divisor: one request gets at most this part of the heap's budget between two collections, and of
/// the account's room. So caches are small in a small or nearly full heap.
const CACHE_FRACTION: usize = 16;

/// The caches of all threads, by slot.
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
    /// The marks of the cycle in progress.
    next_marks: Mutex<Arc<Marks>>,
    /// The markers, if there may be several.
    team: Option<Arc<Team>>,
    wanted: AtomicBool,
    /// The number of the [`Pace`].
    pace: AtomicU8,
    /// Whether collections that no thread waits for run concurrently.
    concurrent: AtomicBool,
    /// The lasting orders of a policy.
    lasting_orders: LastingOrders,
    statistics: Mutex<Statistics>,
    /// For tests: faults injected into the collector.
    pub faults: faults::Faults,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heap {
    /// An empty heap.
    ///
    /// # Errors
    /// The host has no address space for it.
    pub fn new(limits: Limits) -> io::Result<Arc<Self>> {
        // Large objects need adjacent blocks and do not move, so holes remain between them. With
        // address space of twice the limit, a heap below its limit seldom fails because of holes.
        let bytes = limits.bytes_max.max(BLOCK_BYTES).saturating_mul(2);
        let mapping = Mapping::reserve(bytes.next_multiple_of(BLOCK_BYTES))?;
        if limits.resident_bytes > 0 {
            // An older kernel cannot do this. Pages are then mapped at their first access, which is
            // correct but slower.
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
            pace: AtomicU8::new(Pace::Ahead.number()),
            concurrent: AtomicBool::new(limits.torture.is_some_and(|torture| torture.concurrent)),
            lasting_orders: LastingOrders::default(),
            statistics: Mutex::new(Statistics { trigger_bytes: trigger, ..Statistics::default() }),
            faults: faults::Faults::default(),
        }))
    }

    /// The limits it was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// An empty cache, known to the collector until it is dropped. Its refills are charged to the
    /// account.
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

    /// Takes the memory of a dropped cache back.
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

    /// Adds up to `want` cells to a cache, of which `need` are adjacent. Called by the cache's
    /// owner, or by the system-call thread while the owner waits for it.
    ///
    /// # Errors
    /// No run of `need` cells is available within the limit.
    pub fn refill(&self, cells: &Cells, need: usize, want: usize) -> Result<(), OutOfMemory> {
        self.refill_words(cells.words(), need, want)
    }

    /// As [`refill`](Self::refill), for a cache given by its words.
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

    /// As [`refill`](Self::refill), but leaves the memory kept for handlers unless
    /// `spends_reserve`.
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

    /// Bytes that may be taken without the right to use the reserve. They include a quarter of the
    /// reserve. So a collection after the first refusal finds the heap exhausted, whatever the size
    /// of the refused object.
    fn room_bytes(&self, space: &Space) -> usize {
        let taken = space.taken_bytes - space.covered_bytes.min(space.taken_bytes);
        let used = space.held_bytes + taken + self.limits.reserve_bytes() / 4 * 3;
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
        self.set_pace(space);
        // Memory taken during a cycle counts towards the next one.
        let is_collecting = space.fresh.is_some() || !space.is_swept();
        let due = !is_collecting && (tortured || space.taken_bytes >= space.budget_bytes);
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

    /// Marks the beginning of a step of a collection. Tests may kill the collector here, or let it
    /// panic; the next collection must then be complete.
    #[inline]
    pub fn step(&self) {
        self.faults.step();
    }

    fn register_foreign(&self, value: Value) {
        lock(&self.foreign).push(value);
    }

    /// Number of Rust objects in the heap.
    #[must_use]
    pub fn foreign_objects(&self) -> usize {
        lock(&self.foreign).len()
    }
}

#[cfg(test)]
mod tests;
