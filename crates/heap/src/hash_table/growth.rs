//! Growth of a table. New storage is made in slices while the spin bit is free, and entries move a
//! few at a time.
//!
//! ```text
//!   from     | moved, left as they were | to be moved         |       full when the growth began
//!                       └────────┐        ^ moved
//!   now      | live entries, moved | room for the rest | what was added since | free |
//!                                  ^ into              ^ base                 ^ used
//! ```
//!
//! Each operation that changes the table first moves [`MOVES`] entries. The new storage has room
//! for all additions made until every entry has moved, so a growth ends before the new storage is
//! full.
//!
//! **Invariant:** exactly one entry of a key is valid: in `now`, or in `from` at index `moved` or
//! later. An old entry whose key has moved has the same value as the new entry, or is deleted too.
//! Otherwise it would keep alive a value that the table no longer contains.

use super::{
    CAPACITY_MAX, CAPACITY_MIN, DELETED, ENTRIES, GROWTH, INDEX, STRIDE, Storage, Table, USED, walk,
};
use crate::heap::pause::parts;
use crate::heap::{Mutator, word};
use crate::raise::{Raise, Result};
use crate::text::bytes;
use crate::value::Value;
use core::hint;
use core::ops::Range;
use kyocho_sys::scheduling;

/// Entries that an operation moves: about a microsecond of work.
pub(super) const MOVES: usize = 32;

// Elements of the vector that describes a growth.
const FROM_INDEX: usize = 0;
const FROM_ENTRIES: usize = 1;
const MOVED: usize = 2;
const INTO: usize = 3;
const BASE: usize = 4;

/// A growth in progress.
#[derive(Debug)]
pub(super) struct Growth {
    state: Value,
    pub(super) from: Storage,
}

impl Growth {
    /// The growth of a table, if one is in progress.
    #[inline]
    pub(super) fn of(table: Value) -> Option<Self> {
        let state = table.field_at(GROWTH);
        (state != Value::NIL).then(|| {
            let from = Storage {
                index: state.field_at(FROM_INDEX),
                entries: state.field_at(FROM_ENTRIES),
            };
            Self { state, from }
        })
    }

    fn number(&self, element: usize) -> usize {
        self.state.field_at(element).as_fixnum().unwrap_or(0) as usize
    }

    /// Entries of the old storage that have moved.
    pub(super) fn moved(&self) -> usize {
        self.number(MOVED)
    }
}

impl Storage {
    /// An empty index and empty entries.
    pub(super) fn make(m: &mut Mutator, capacity: usize) -> Result<Self> {
        if capacity > CAPACITY_MAX {
            return Err(Raise::out_of_memory());
        }
        let words = (2 * capacity).next_power_of_two() / 2;
        let index = m.begin(0, words)?;
        for part in parts(0..words) {
            Mutator::begin_words(index, part, Value::from_word(0));
            m.pause(&[index])?;
        }
        let entries = m.keeping(&[index], |m| m.vector_in_parts(capacity * STRIDE, DELETED))?;
        Ok(Self { index, entries })
    }

    pub(super) fn capacity(self) -> usize {
        self.entries.size_words() / STRIDE
    }

    pub(super) fn mask(self) -> usize {
        2 * self.index.size_words() - 1
    }

    /// Writes an entry.
    pub(super) fn put(self, entry: usize, words: [Value; STRIDE]) {
        for (i, word) in words.into_iter().enumerate() {
            self.entries.set_field_at(entry * STRIDE + i, word);
        }
    }

    /// Writes an entry's number into a slot of the index.
    pub(super) fn point(self, slot: usize, entry: usize) {
        word::store_quarter(bytes::payload(self.index) + 4 * slot, entry as u32 + 1);
    }

    /// Writes an entry's number into the first free slot for this hash.
    fn point_by(self, hash: Value, entry: usize) {
        let (mask, index) = (self.mask(), bytes::payload(self.index));
        let mut slot = hash.as_fixnum().unwrap_or(0) as usize & mask;
        while word::load_quarter(index + 4 * slot) != 0 {
            slot = (slot + 1) & mask;
        }
        self.point(slot, entry);
    }

    fn words(self, entry: usize) -> [Value; STRIDE] {
        core::array::from_fn(|i| self.entries.field_at(entry * STRIDE + i))
    }
}

impl Table {
    /// Begins to move to storage for twice the live entries. Does nothing if another thread has
    /// begun a growth meanwhile.
    pub(super) fn grow(&mut self, m: &mut Mutator) -> Result<()> {
        assert!(self.growth.is_none(), "a growth ends before the new storage is full");
        let full = self.now;
        let begun = self.with_bit_free(m, |m, table| {
            // The old entries stay allocated, so new storage cannot get their address.
            m.keeping(&[full.entries], |m| {
                let live = walk::count(m, table)?;
                // Each addition moves some entries; all must have moved before the storage is full.
                let additions = full.capacity() / MOVES + 1;
                let capacity = (2 * live).max(live + additions).max(CAPACITY_MIN);
                Ok((Storage::make(m, capacity)?, live))
            })
        });
        let (to, live) = begun?;
        if self.now.entries == full.entries {
            let (zero, base) = (Value::fixnum(0), Value::fixnum(live as i64));
            let state = m.vector_of(&[self.now.index, self.now.entries, zero, zero, base])?;
            self.set_number(USED, live);
            self.use_storage(to, Some(state));
        }
        Ok(())
    }

    /// Makes this the table's storage.
    pub(super) fn use_storage(&mut self, storage: Storage, growth: Option<Value>) {
        self.object.set_field_at(INDEX, storage.index);
        self.object.set_field_at(ENTRIES, storage.entries);
        self.object.set_field_at(GROWTH, growth.unwrap_or(Value::NIL));
        (self.now, self.growth) = (storage, Growth::of(self.object));
    }

    /// Runs `work` with the spin bit free. Other threads may change the table meanwhile.
    pub(super) fn with_bit_free<T>(
        &mut self,
        m: &mut Mutator,
        work: impl FnOnce(&mut Mutator, Value) -> T,
    ) -> T {
        let free = BitFree::of(self.object);
        let result = work(m, self.object);
        drop(free);
        self.look();
        result
    }

    /// Moves some entries of a growing table.
    #[inline]
    pub(super) fn move_some(&mut self) {
        if self.growth.is_some() {
            self.move_entries(MOVES);
        }
    }

    #[cold]
    fn move_entries(&mut self, count: usize) {
        let Some(growth) = &self.growth else { return };
        let (first, end) = (growth.moved(), growth.from.capacity());
        let until = end.min(first.saturating_add(count));
        let mut into = growth.number(INTO);
        for entry in first..until {
            if !self.is_deleted(growth.from.entries, entry) {
                let words = growth.from.words(entry);
                self.now.put(into, words);
                self.now.point_by(words[0], into);
                into += 1;
            }
        }
        let set =
            |element, number| growth.state.set_field_at(element, Value::fixnum(number as i64));
        set(MOVED, until);
        set(INTO, into);
        if until == end {
            self.use_storage(self.now, None);
        }
    }

    /// The old entry of a key whose entry has moved to `entries`.
    pub(super) fn old_entry(
        &self,
        entries: Value,
        key: Value,
        hash: Value,
    ) -> Option<(Value, usize)> {
        let growth = self.growth.as_ref().filter(|_| entries == self.now.entries)?;
        let entry = self.find(growth.from, key, hash).ok()?;
        Some((growth.from.entries, entry))
    }

    /// Copies a changed entry to the old entry that it was moved from.
    pub(super) fn change_old_entry(&self, entries: Value, entry: usize, key: Value, hash: Value) {
        if let Some((left, at)) = self.old_entry(entries, key, hash) {
            for i in 1..STRIDE {
                left.set_field_at(at * STRIDE + i, entries.field_at(entry * STRIDE + i));
            }
        }
    }

    /// The ranges of valid entries, oldest first.
    pub(super) fn ranges(&self) -> Vec<(Value, Range<usize>)> {
        let (entries, used) = (self.now.entries, self.number(USED));
        match &self.growth {
            None => vec![(entries, 0..used)],
            Some(growth) => vec![
                (entries, 0..growth.number(INTO)),
                (growth.from.entries, growth.moved()..growth.from.capacity()),
                (entries, growth.number(BASE)..used),
            ],
        }
    }
}

/// Keeps a table's spin bit free until dropped.
struct BitFree(Value);

impl BitFree {
    fn of(table: Value) -> Self {
        table.unlock();
        Self(table)
    }
}

impl Drop for BitFree {
    fn drop(&mut self) {
        take_bit(self.0);
    }
}

/// Waits for a table's spin bit and takes it.
#[inline]
pub(super) fn take_bit(table: Value) {
    /// Attempts before the kernel thread yields the processor.
    const SPINS: usize = 200;
    let mut tries = 0;
    while !table.try_lock() {
        tries += 1;
        if tries % SPINS == 0 {
            scheduling::yield_to_host();
        }
        hint::spin_loop();
    }
}
