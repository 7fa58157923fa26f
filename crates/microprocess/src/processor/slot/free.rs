//! Free slots: each virtual processor has two magazines for each class, and exchanges full and
//! empty ones with a depot that all share.
//!
//! ```text
//!   virtual processor                     depot
//!   put ─┐                                  full:  [128] [128] ...
//!        ▼    swapped when    full ────►    loose: · · ·      (of kernel threads without a virtual processor)
//!     loaded ◄──────────────► spare
//!        │    full or empty   empty ◄────
//! take ◄─┘
//! ```
//!
//! If microprocesses are spawned on one virtual processor and end on another, slots move between
//! the two all the time. So a virtual processor keeps at most two magazines of a class, some 1 MB
//! of stacks. Exchanging a magazine takes a few instructions under a lock, at most once in
//! [`MAGAZINE`] slots, whatever the pattern of takes and puts.
//!
//! Full magazines in the depot beyond [`WARM_MAX`] are its *surplus*, as after a peak. Those that
//! were not needed for a while are *cooled*: the pages of their stacks go back to the host, except
//! for the page of the record. Warm magazines are given out before cold ones.
//!
//! Source: Bonwick and Adams, *Magazines and Vmem* (USENIX 2001), §3; §3.6 for the depot's working
//! set.

use core::cell::Cell;

use kyocho_sys::prim::atomic::{AtomicBool, Ordering};

use super::{ARENAS, CLASSES, make};
use crate::processor::record::Record;

/// Number of slots in a full magazine.
pub(super) const MAGAZINE: u32 = 128;

/// How many full magazines of each class the depot always keeps warm. Stacks of larger classes may
/// be deeper, so there are fewer of them.
const WARM_MAX: [u32; CLASSES] = [u32::MAX, 8, 4, 2, 1];

/// Some depot has a surplus, and the maker was informed.
static HAS_SURPLUS: AtomicBool = AtomicBool::new(false);

/// Whether some depot had a surplus at the last check.
pub(crate) fn has_surplus() -> bool {
    HAS_SURPLUS.load(Ordering::Relaxed)
}

/// Cools the magazines that were not needed since the last call. Call from a kernel thread without
/// a virtual processor.
pub(crate) fn trim() {
    HAS_SURPLUS.store(false, Ordering::Relaxed);
    (1..CLASSES).for_each(|class| cool(class, Depot::unused));
}

/// Cools all magazines beyond the bound. Call from a kernel thread without a virtual processor.
pub(crate) fn shrink() {
    (1..CLASSES).for_each(|class| cool(class, Depot::surplus));
}

/// Returns the stacks of some magazines to the host. `count` returns how many; it is called once.
fn cool(class: usize, count: fn(&mut Depot, u32) -> u32) {
    let depot = &ARENAS[class].free;
    let count = count(&mut depot.acquire(), WARM_MAX[class]);
    for _ in 0..count {
        // The slots are in no list meanwhile, and no lock is held during the system calls.
        let Some(first) = depot.acquire().take_warm() else { break };
        let mut at = Some(first);
        while let Some(record) = at {
            record.discard_stack();
            at = record.link.get();
        }
        depot.acquire().put_cold(first);
    }
}

/// A stack of free slots, linked by [`Record::link`].
struct Magazine {
    first: Cell<Option<&'static Record>>,
    count: Cell<u32>,
}

impl Magazine {
    const fn new() -> Self {
        Self { first: Cell::new(None), count: Cell::new(0) }
    }

    #[inline]
    fn take(&self) -> Option<&'static Record> {
        let record = self.first.get()?;
        self.first.set(record.link.get());
        self.count.set(self.count.get() - 1);
        Some(record)
    }

    /// Adds `record`; returns whether there was room.
    #[inline]
    fn put(&self, record: &'static Record) -> bool {
        let count = self.count.get();
        if count == MAGAZINE {
            return false;
        }
        record.link.set(self.first.get());
        self.first.set(Some(record));
        self.count.set(count + 1);
        true
    }

    /// Fills an empty magazine at once.
    fn load(&self, first: &'static Record) {
        self.first.set(Some(first));
        self.count.set(MAGAZINE);
    }

    /// Empties a full magazine and returns its slots; returns nothing if it is not full.
    fn unload(&self) -> Option<&'static Record> {
        if self.count.get() < MAGAZINE {
            return None;
        }
        self.count.set(0);
        self.first.take()
    }

    fn swap_with(&self, other: &Self) {
        self.first.swap(&other.first);
        self.count.swap(&other.count);
    }
}

/// The free slots of one virtual processor, by class. Used by its holder, with events masked.
pub(crate) struct FreeLists {
    loaded: [Magazine; CLASSES],
    spare: [Magazine; CLASSES],
}

impl FreeLists {
    pub(crate) const fn new() -> Self {
        Self {
            loaded: [const { Magazine::new() }; CLASSES],
            spare: [const { Magazine::new() }; CLASSES],
        }
    }

    /// A free slot of `class`; `None` if there is no memory for more.
    #[inline]
    pub(crate) fn take(&self, class: u8) -> Option<&'static Record> {
        self.loaded[usize::from(class)].take().or_else(|| self.reload(class))
    }

    /// Adds a free slot. Returns whether the caller must have [`trim`] called: there is a surplus
    /// of which the maker was not informed yet.
    #[inline]
    pub(crate) fn put(&self, record: &'static Record) -> bool {
        !self.loaded[usize::from(record.class.get())].put(record) && self.exchange(record)
    }

    /// Takes from the spare magazine, a full magazine of the depot, or a single slot of the depot.
    /// The loaded magazine is empty.
    #[cold]
    fn reload(&self, class: u8) -> Option<&'static Record> {
        let (loaded, spare) = self.magazines(class);
        loaded.swap_with(spare);
        if loaded.count.get() == 0 {
            let full = ARENAS[usize::from(class)].free.acquire().take_full();
            let Some(first) = full else { return make(class) };
            loaded.load(first);
        }
        loaded.take()
    }

    /// Puts `record` into the spare magazine. If that was full, its slots go to the depot first.
    /// The loaded magazine is full.
    #[cold]
    fn exchange(&self, record: &'static Record) -> bool {
        let class = record.class.get();
        let (loaded, spare) = self.magazines(class);
        let mut is_surplus = false;
        if let Some(first) = spare.unload() {
            let mut depot = ARENAS[usize::from(class)].free.acquire();
            depot.put_full(first);
            is_surplus = depot.warm > WARM_MAX[usize::from(class)];
        }
        loaded.swap_with(spare);
        let _there_is_room = loaded.put(record);
        is_surplus && !HAS_SURPLUS.swap(true, Ordering::Relaxed)
    }

    fn magazines(&self, class: u8) -> (&Magazine, &Magazine) {
        (&self.loaded[usize::from(class)], &self.spare[usize::from(class)])
    }

    /// Returns all slots to the depots, when the virtual processor ends.
    pub(crate) fn give_all_back(&self) {
        for (arena, magazine) in
            ARENAS.iter().zip(&self.loaded).chain(ARENAS.iter().zip(&self.spare))
        {
            let mut depot = arena.free.acquire();
            if let Some(first) = magazine.unload() {
                depot.put_full(first);
            }
            while let Some(record) = magazine.take() {
                depot.put(record);
            }
        }
    }
}

/// The free slots of one class that no virtual processor has.
pub(super) struct Depot {
    /// The contents of full magazines. The first slot of each refers to the next magazine by
    /// [`Record::joins`], which is otherwise used only by joiners.
    full: Option<&'static Record>,
    /// How many magazines `full` has, and the least number since the last check.
    warm: u32,
    warm_min: u32,
    /// Magazines of slots whose stacks were returned to the host.
    cold: Option<&'static Record>,
    /// Single slots, linked by [`Record::link`]; fewer than one magazine.
    loose: Option<&'static Record>,
    loose_count: u32,
}

impl Depot {
    pub(super) const fn new() -> Self {
        Self { full: None, warm: 0, warm_min: 0, cold: None, loose: None, loose_count: 0 }
    }

    fn put_full(&mut self, first: &'static Record) {
        first.joins.set(self.full.replace(first));
        self.warm += 1;
    }

    fn put_cold(&mut self, first: &'static Record) {
        first.joins.set(self.cold.replace(first));
    }

    fn take_full(&mut self) -> Option<&'static Record> {
        self.take_warm().or_else(|| {
            let first = self.cold?;
            self.cold = first.joins.take();
            Some(first)
        })
    }

    fn take_warm(&mut self) -> Option<&'static Record> {
        let first = self.full?;
        self.full = first.joins.take();
        self.warm -= 1;
        self.warm_min = self.warm_min.min(self.warm);
        Some(first)
    }

    /// How many full magazines there are beyond `bound`.
    fn surplus(&mut self, bound: u32) -> u32 {
        self.warm.saturating_sub(bound)
    }

    /// How many of those were not needed since the last call.
    fn unused(&mut self, bound: u32) -> u32 {
        let unused = self.warm_min.saturating_sub(bound);
        self.warm_min = self.warm;
        if self.warm > bound {
            // To be checked again, after a time.
            HAS_SURPLUS.store(true, Ordering::Relaxed);
        }
        unused
    }

    pub(super) fn put(&mut self, record: &'static Record) {
        record.link.set(self.loose.replace(record));
        self.loose_count += 1;
        if self.loose_count == MAGAZINE {
            self.loose_count = 0;
            if let Some(first) = self.loose.take() {
                self.put_full(first);
            }
        }
    }

    /// A single slot, from the loose ones. If there are none, a full magazine becomes loose.
    pub(super) fn take(&mut self) -> Option<&'static Record> {
        if self.loose.is_none() {
            self.loose = self.take_full();
            self.loose_count = if self.loose.is_some() { MAGAZINE } else { 0 };
        }
        let record = self.loose?;
        self.loose = record.link.get();
        self.loose_count -= 1;
        Some(record)
    }
}

#[cfg(test)]
mod tests;
