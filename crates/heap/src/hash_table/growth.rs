//! Growth: storage is made in parts while the spin bit is free, and entries move a few at a time.
//!
//! ```text
//!   from     | moved, left as they were | to be moved         |          full when the growth began
//!                       └────────┐        ^ moved
//!   now      | moved, none deleted | room for the rest | what was added since | free |
//!                                  ^ into              ^ base                 ^ used
//! ```
//!
//! Each operation that changes the table moves [`MOVES`] entries first. So a growth has ended
//! before the new storage is full: that has room for as many additions as the moves take.
//!
//! **Invariant:** a key has one entry that counts: in `now`, or in `from` at `moved` or behind it.
//! The entry that it left behind has the same value, or is deleted too: else it would keep a value
//! that the table has forgotten.

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

/// Entries that an operation moves: some microsecond's work.
pub(super) const MOVES: usize = 32;

// Elements of the vector that tells of a growth.
const FROM_INDEX: usize = 0;
const FROM_ENTRIES: usize = 1;
const MOVED: usize = 2;
const INTO: usize = 3;
const BASE: usize = 4;

/// A growth that has not ended.
#[derive(Debug)]
pub(super) struct Growth {
    state: Value,
    pub(super) from: Storage,
}

impl Growth {
    /// That of a table.
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
    /// An empty index and entries.
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

    /// Writes the number of an entry into a slot of the index.
    pub(super) fn point(self, slot: usize, entry: usize) {
        word::store_quarter(bytes::payload(self.index) + 4 * slot, entry as u32 + 1);
    }

    /// Writes the number of an entry into the first free slot for this hash.
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
    /// begun meanwhile.
    pub(super) fn grow(&mut self, m: &mut Mutator) -> Result<()> {
        assert!(self.growth.is_none(), "a growth ends before the new storage is full");
        let full = self.now;
        let begun = self.with_bit_free(m, |m, table| {
            // The old entries stay allocated: no new storage can have their address.
            m.keeping(&[full.entries], |m| {
                let live = walk::count(m, table)?;
                // Each addition moves some entries: all of them before there is no room.
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

    /// Does `work` with the spin bit free. Other threads may change the table meanwhile.
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

    /// Moves some entries of a table that grows.
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
    pub(super) fn left_behind(
        &self,
        entries: Value,
        key: Value,
        hash: Value,
    ) -> Option<(Value, usize)> {
        let growth = self.growth.as_ref().filter(|_| entries == self.now.entries)?;
        let entry = self.find(growth.from, key, hash).ok()?;
        Some((growth.from.entries, entry))
    }

    /// Copies a changed entry to the old entry that it has moved from.
    pub(super) fn change_left_behind(&self, entries: Value, entry: usize, key: Value, hash: Value) {
        if let Some((left, at)) = self.left_behind(entries, key, hash) {
            for i in 1..STRIDE {
                left.set_field_at(at * STRIDE + i, entries.field_at(entry * STRIDE + i));
            }
        }
    }

    /// Where the entries that count are, oldest first.
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

/// A table's spin bit is free until this is dropped.
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

/// Waits for a table's spin bit.
#[inline]
pub(super) fn take_bit(table: Value) {
    /// Tries before the kernel thread gives the processor to another.
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
