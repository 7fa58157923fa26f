//! Hash tables: open addressing over heap vectors, in insertion order.
//!
//! ```text
//! HashTable [equivalence][count][used][index][entries][procedures][growth]
//!   index    raw 32-bit slots: 0 is empty, n refers to entry n - 1; linear probing;
//!            their number is a power of two, and at least twice that of the entries
//!   entries  vector of (hash, key, value), filled from the left; a deleted entry has no key
//!              weak keys:    (hash, ephemeron of key and value, nothing)
//!              weak values:  (hash, ephemeron of value and key, nothing)
//!              both weak:    (hash, ephemeron of key, ephemeron of value)
//!            an entry with a broken ephemeron counts as deleted
//!   growth   while the table [grows](growth): its old storage; otherwise nothing
//! ```
//!
//! An operation holds the table's spin bit from its first read to its last: usually some tens of
//! nanoseconds, a microsecond while the table grows. New storage for a growing table is made in
//! slices with the bit free. Each operation that changes the table moves a few entries to it.
//! Operations on a whole table (`walk`) run in slices and hold the bit during each slice. No Lisp
//! code runs while the bit is held, so it is never held across a safepoint.
//!
//! Tables with an equivalence written in Lisp (`Equivalence::Custom`) are implemented in the
//! prelude. They map a hash to a list of associations, and use a table of numbers from here.

mod growth;
#[cfg(test)]
mod tests;
mod walk;

use crate::equality::{equal, equal_hash, eqv, eqv_hash, text_hash};
use crate::heap::object::{FLAG_OWN, FLAG_OWN_TOO, Kind};
use crate::heap::{Mutator, word};
use crate::raise::Result;
use crate::text::{Text, bytes};
use crate::value::Value;
use growth::{Growth, take_bit};
pub use walk::{Walk, copy, count};

/// The relation by which two keys are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equivalence {
    /// `eq?` and `eqv?`. Numbers are compared by value, which R7RS permits for `eq?`.
    Eqv,
    /// `equal?`.
    Equal,
    /// `string=?`.
    String,
    /// A Lisp procedure. The keys in this table are its hashes.
    Custom,
}

const EQUIVALENCES: [Equivalence; 4] =
    [Equivalence::Eqv, Equivalence::Equal, Equivalence::String, Equivalence::Custom];

// Indices of payload words.
const EQUIVALENCE: usize = 0;
const COUNT: usize = 1;
const USED: usize = 2;
const INDEX: usize = 3;
const ENTRIES: usize = 4;
const PROCEDURES: usize = 5;
const GROWTH: usize = 6;
const WORDS: usize = 7;

/// Which references of an association are weak. An association disappears with the object of a weak
/// reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// None: the table keeps keys and values alive.
    None,
    /// Keys.
    Keys,
    /// Values.
    Values,
    /// Keys and values: an association disappears when either object does.
    Both,
}

const FLAG_WEAK_KEYS: u8 = FLAG_OWN;
const FLAG_WEAK_VALUES: u8 = FLAG_OWN_TOO;

/// Words of an entry: hash, key, value.
const STRIDE: usize = 3;
/// The key of a deleted entry.
const DELETED: Value = Value::ABSENT;
/// Entries of a table created without a size hint.
const CAPACITY_MIN: usize = 8;
/// An entry's number plus one must fit an index slot.
const CAPACITY_MAX: usize = 1 << 30;

/// An index and its entries.
#[derive(Clone, Copy, Debug)]
struct Storage {
    index: Value,
    entries: Value,
}

/// A hash table whose spin bit is held.
#[derive(Debug)]
pub struct Table {
    object: Value,
    equivalence: Equivalence,
    weakness: Weakness,
    now: Storage,
    /// The old storage, while the table grows.
    growth: Option<Growth>,
}

/// The position of a key.
enum KeyPosition {
    /// In this entry of these entries.
    Found(Value, usize),
    /// Absent: this slot of the index is free for it.
    Free(usize),
}

/// A new table with room for `capacity` entries.
///
/// # Errors
/// Out of memory, or those of [`Mutator::pause`].
pub fn make(
    m: &mut Mutator,
    equivalence: Equivalence,
    procedures: Value,
    capacity: usize,
) -> Result {
    let storage = Storage::make(m, capacity.max(CAPACITY_MIN))?;
    let zero = Value::fixnum(0);
    let equivalence = Value::fixnum(equivalence as i64);
    let fields: [Value; WORDS] =
        [equivalence, zero, zero, storage.index, storage.entries, procedures, Value::NIL];
    Ok(m.object_of(Kind::HashTable, &fields)?)
}

/// The equivalence of `table`; `None` if it is not a table.
pub fn equivalence(table: Value) -> Option<Equivalence> {
    if !table.is_kind(Kind::HashTable) {
        return None;
    }
    EQUIVALENCES.get(table.field_at(EQUIVALENCE).as_fixnum()? as usize).copied()
}

impl Equivalence {
    /// The equivalence with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        EQUIVALENCES.get(usize::from(number)).copied()
    }
}

/// Makes the keys or the values of a new table weak.
pub fn make_weak(table: Value, weakness: Weakness) {
    match weakness {
        Weakness::None => {}
        Weakness::Keys => table.set_flags(FLAG_WEAK_KEYS),
        Weakness::Values => table.set_flags(FLAG_WEAK_VALUES),
        Weakness::Both => table.set_flags(FLAG_WEAK_KEYS | FLAG_WEAK_VALUES),
    }
}

/// The weakness of a table.
pub fn weakness(table: Value) -> Weakness {
    let flags = if table.is_kind(Kind::HashTable) { table.flags() } else { 0 };
    match (flags & FLAG_WEAK_KEYS != 0, flags & FLAG_WEAK_VALUES != 0) {
        (false, false) => Weakness::None,
        (true, false) => Weakness::Keys,
        (false, true) => Weakness::Values,
        (true, true) => Weakness::Both,
    }
}

/// Sets the procedures of a new table, which do not exist yet when `make` is called.
pub fn set_procedures(table: Value, procedures: Value) {
    table.set_field_at(PROCEDURES, procedures);
}

/// The procedures that the table was given.
pub fn procedures(table: Value) -> Value {
    table.field(PROCEDURES).unwrap_or(Value::FALSE)
}

/// The hash of a key as stored: a non-negative fixnum.
#[inline]
fn hash(equivalence: Equivalence, key: Value) -> Value {
    let hash = match equivalence {
        Equivalence::Eqv | Equivalence::Custom => eqv_hash(key),
        Equivalence::Equal => equal_hash(key),
        Equivalence::String => Text::of(key).map_or(0, text_hash),
    };
    Value::fixnum((hash >> 4) as i64)
}

impl Table {
    /// Takes the table's spin bit; `None` if `object` is not a table.
    #[inline]
    pub fn lock(object: Value) -> Option<Self> {
        let equivalence = equivalence(object)?;
        take_bit(object);
        let weakness = weakness(object);
        let now = Storage { index: Value::NIL, entries: Value::NIL };
        let mut table = Self { object, equivalence, weakness, now, growth: None };
        table.look();
        Some(table)
    }

    /// Reads where the storage is.
    fn look(&mut self) {
        let index = self.object.field_at(INDEX);
        self.now = Storage { index, entries: self.object.field_at(ENTRIES) };
        self.growth = Growth::of(self.object);
    }

    /// Whether its equivalence is written in Lisp.
    pub fn is_custom(&self) -> bool {
        self.equivalence == Equivalence::Custom
    }

    fn number(&self, word: usize) -> usize {
        self.object.field_at(word).as_fixnum().unwrap_or(0) as usize
    }

    fn set_number(&self, word: usize, number: usize) {
        self.object.set_field_at(word, Value::fixnum(number as i64));
    }

    fn is_weak(&self) -> bool {
        self.weakness != Weakness::None
    }

    fn capacity(&self) -> usize {
        self.now.capacity()
    }

    fn key(&self, entries: Value, entry: usize) -> Value {
        let key = entries.field_at(entry * STRIDE + 1);
        match self.weakness {
            Weakness::None => key,
            Weakness::Both if self.is_deleted(entries, entry) => DELETED,
            Weakness::Keys | Weakness::Both => key.ephemeron_key().unwrap_or(DELETED),
            Weakness::Values => key.ephemeron_datum().unwrap_or(DELETED),
        }
    }

    fn value(&self, entries: Value, entry: usize) -> Value {
        let both = entries.field_at(entry * STRIDE + 1);
        match self.weakness {
            Weakness::None => entries.field_at(entry * STRIDE + 2),
            Weakness::Keys => both.ephemeron_datum().unwrap_or(Value::FALSE),
            Weakness::Values => both.ephemeron_key().unwrap_or(Value::FALSE),
            Weakness::Both => {
                let value = entries.field_at(entry * STRIDE + 2);
                value.ephemeron_key().unwrap_or(Value::FALSE)
            }
        }
    }

    fn same(&self, a: Value, b: Value) -> bool {
        a == b
            || match self.equivalence {
                Equivalence::Eqv | Equivalence::Custom => eqv(a, b),
                Equivalence::Equal => equal(a, b),
                Equivalence::String => match (Text::of(a), Text::of(b)) {
                    (Some(a), Some(b)) => a.same(b),
                    _ => false,
                },
            }
    }

    /// Whether an entry contains no association.
    fn is_deleted(&self, entries: Value, entry: usize) -> bool {
        let key = entries.field_at(entry * STRIDE + 1);
        let is_broken = |word| entries.field_at(entry * STRIDE + word).ephemeron_is_broken();
        key == DELETED
            || self.is_weak() && (is_broken(1) || self.weakness == Weakness::Both && is_broken(2))
    }

    /// Finds the entry of a key in one storage, or the free slot for it. Terminates because no
    /// index is full.
    #[inline]
    fn find(
        &self,
        storage: Storage,
        key: Value,
        hash: Value,
    ) -> core::result::Result<usize, usize> {
        let (mask, index) = (storage.mask(), bytes::payload(storage.index));
        let mut slot = hash.as_fixnum().unwrap_or(0) as usize & mask;
        loop {
            let entry = word::load_quarter(index + 4 * slot) as usize;
            if entry == 0 {
                return Err(slot);
            }
            let at = entry - 1;
            if storage.entries.field_at(at * STRIDE) == hash
                && self.same(self.key(storage.entries, at), key)
            {
                return Ok(at);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Finds a key in both storages if the table grows.
    #[inline]
    fn place(&self, key: Value, hash: Value) -> KeyPosition {
        let slot = match self.find(self.now, key, hash) {
            Ok(at) => return KeyPosition::Found(self.now.entries, at),
            Err(slot) => slot,
        };
        if let Some(growth) = &self.growth
            && let Ok(at) = self.find(growth.from, key, hash)
            && at >= growth.moved()
        {
            return KeyPosition::Found(growth.from.entries, at);
        }
        KeyPosition::Free(slot)
    }

    /// The value of a key.
    pub fn get(&self, key: Value) -> Option<Value> {
        match self.place(key, hash(self.equivalence, key)) {
            KeyPosition::Found(entries, entry) => Some(self.value(entries, entry)),
            KeyPosition::Free(_) => None,
        }
    }

    /// Associates a key with a value. Both are arguments of the primitive, or kept. May pause, with
    /// the spin bit free.
    ///
    /// # Errors
    /// Out of memory, or those of [`Mutator::pause`]. The table is unchanged.
    pub fn set(&mut self, m: &mut Mutator, key: Value, value: Value) -> Result<()> {
        let hash = hash(self.equivalence, key);
        loop {
            self.move_some();
            match self.place(key, hash) {
                KeyPosition::Found(entries, entry) => {
                    self.replace(m, entries, entry, value)?;
                    self.change_old_entry(entries, entry, key, hash);
                    return Ok(());
                }
                KeyPosition::Free(slot) if self.number(USED) < self.capacity() => {
                    return self.add(m, slot, [hash, key, value]);
                }
                KeyPosition::Free(_) => self.grow(m)?,
            }
        }
    }

    /// Adds an association for a key that has no entry.
    fn add(&self, m: &mut Mutator, slot: usize, [hash, key, value]: [Value; 3]) -> Result<()> {
        let words = match self.weakness {
            Weakness::None => [hash, key, value],
            Weakness::Keys => [hash, m.ephemeron(key, value)?, Value::FALSE],
            Weakness::Values => [hash, m.ephemeron(value, key)?, Value::FALSE],
            Weakness::Both => {
                let key = m.ephemeron(key, Value::FALSE)?;
                [hash, key, m.ephemeron(value, Value::FALSE)?]
            }
        };
        let entry = self.number(USED);
        self.now.put(entry, words);
        self.now.point(slot, entry);
        self.set_number(USED, entry + 1);
        self.set_number(COUNT, self.number(COUNT) + 1);
        Ok(())
    }

    /// Changes the value of an entry.
    fn replace(&self, m: &mut Mutator, entries: Value, entry: usize, value: Value) -> Result<()> {
        match self.weakness {
            Weakness::None => entries.set_field_at(entry * STRIDE + 2, value),
            Weakness::Keys => {
                entries.field_at(entry * STRIDE + 1).set_ephemeron_datum(value);
            }
            // The key of an ephemeron cannot change, so a new one is needed.
            Weakness::Values => {
                let both = m.ephemeron(value, self.key(entries, entry))?;
                entries.set_field_at(entry * STRIDE + 1, both);
            }
            Weakness::Both => {
                let value = m.ephemeron(value, Value::FALSE)?;
                entries.set_field_at(entry * STRIDE + 2, value);
            }
        }
        Ok(())
    }

    /// Removes a key. Returns whether it was present.
    pub fn delete(&mut self, key: Value) -> bool {
        self.move_some();
        let hash = hash(self.equivalence, key);
        let KeyPosition::Found(entries, entry) = self.place(key, hash) else {
            return false;
        };
        let old_entry = self.old_entry(entries, key, hash);
        for (entries, entry) in [(entries, entry)].into_iter().chain(old_entry) {
            // The hash stays: probe sequences of later keys pass through this entry.
            entries.set_field_at(entry * STRIDE + 1, DELETED);
            entries.set_field_at(entry * STRIDE + 2, Value::FALSE);
        }
        self.set_number(COUNT, self.number(COUNT) - 1);
        true
    }

    /// Removes all associations.
    ///
    /// # Errors
    /// Out of memory for the new, small storage, or those of [`Mutator::pause`]. The table is
    /// unchanged.
    pub fn clear(&mut self, m: &mut Mutator) -> Result<()> {
        let storage = self.with_bit_free(m, |m, _| Storage::make(m, CAPACITY_MIN))?;
        self.set_number(USED, 0);
        self.set_number(COUNT, 0);
        self.use_storage(storage, None);
        Ok(())
    }

    /// The associations, oldest first.
    pub fn associations(&self) -> impl DoubleEndedIterator<Item = (Value, Value)> + '_ {
        let ranges = self.ranges().into_iter();
        let entries = ranges.flat_map(|(entries, range)| range.map(move |entry| (entries, entry)));
        entries
            .filter(|&(entries, entry)| self.key(entries, entry) != DELETED)
            .map(|(entries, entry)| (self.key(entries, entry), self.value(entries, entry)))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.object.unlock();
    }
}
