//! Free slots: each virtual processor has two magazines of a class, and full ones change hands by the depot, which is everybody's.
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
//! Who spawns on one virtual processor and ends on another moves slots for as long as that goes on. So what a virtual processor keeps is bounded by
//! two magazines a class, some 1 MB of stacks; a magazine changes hands in a few instructions under a lock, once in [`MAGAZINE`] slots; and there is
//! no pattern of takes and puts that goes to the depot more often.
//!
//! Source: Bonwick and Adams, *Magazines and Vmem* (USENIX 2001), §3.

use core::cell::Cell;

use super::{ARENAS, CLASSES, make};
use crate::record::Record;

/// Slots of a full magazine.
pub(super) const MAGAZINE: u32 = 128;

/// Free slots, last in, first out; linked by [`Record::link`].
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

    /// Whether there was room.
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

    /// Fills an empty one at once.
    fn load(&self, first: &'static Record) {
        self.first.set(Some(first));
        self.count.set(MAGAZINE);
    }

    /// What a full one holds; nothing of any other.
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

/// The free slots of one virtual processor, by class. Touched by its holder, masked.
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

    /// A free slot of `class`; `None` when there is no memory for more.
    #[inline]
    pub(crate) fn take(&self, class: u8) -> Option<&'static Record> {
        self.loaded[usize::from(class)].take().or_else(|| self.reload(class))
    }

    #[inline]
    pub(crate) fn put(&self, record: &'static Record) {
        if !self.loaded[usize::from(record.class.get())].put(record) {
            self.exchange(record);
        }
    }

    /// Takes from the spare magazine, from a full one of the depot, or a slot from elsewhere. The loaded one is empty.
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

    /// Puts `record` into the spare magazine; what that was full of goes to the depot. The loaded one is full.
    #[cold]
    fn exchange(&self, record: &'static Record) {
        let class = record.class.get();
        let (loaded, spare) = self.magazines(class);
        if let Some(first) = spare.unload() {
            ARENAS[usize::from(class)].free.acquire().put_full(first);
        }
        loaded.swap_with(spare);
        let _there_is_room = loaded.put(record);
    }

    fn magazines(&self, class: u8) -> (&Magazine, &Magazine) {
        (&self.loaded[usize::from(class)], &self.spare[usize::from(class)])
    }

    /// Gives all slots to everybody: the virtual processor ends.
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
    /// Contents of full magazines: the first of each refers to the next by [`Record::joins`], which only who waits for somebody's end uses
    /// otherwise.
    full: Option<&'static Record>,
    /// Linked by [`Record::link`].
    loose: Option<&'static Record>,
}

impl Depot {
    pub(super) const fn new() -> Self {
        Self { full: None, loose: None }
    }

    fn put_full(&mut self, first: &'static Record) {
        first.joins.set(self.full.replace(first));
    }

    fn take_full(&mut self) -> Option<&'static Record> {
        let first = self.full?;
        self.full = first.joins.take();
        Some(first)
    }

    pub(super) fn put(&mut self, record: &'static Record) {
        record.link.set(self.loose.replace(record));
    }

    /// A single slot: a loose one, or one of a full magazine, which is loose from then on.
    pub(super) fn take(&mut self) -> Option<&'static Record> {
        let record = self.loose.or_else(|| self.take_full())?;
        self.loose = record.link.get();
        Some(record)
    }
}

#[cfg(test)]
mod tests;
