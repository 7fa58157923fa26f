//! Hash tables: open addressing over heap vectors, in the order of insertion.
//!
//! ```text
//! HashTable [equivalence][count][used][index][entries][procedures]
//!   index    raw 32-bit slots: 0 is empty, n stands for entry n - 1; linear probing, a power of two,
//!            at least twice as many as entries fit
//!   entries  vector of (hash, key, value), filled from the left; a deleted entry has no key; where keys are weak,
//!            (hash, ephemeron of key and value, nothing), where values are, (hash, ephemeron of value and key, nothing),
//!            where both are, (hash, ephemeron of key, ephemeron of value); an entry with a broken one counts as deleted
//! ```
//!
//! Every operation holds the table's spin bit from its first look to its last: a few dozen
//! nanoseconds as a rule, the copying of the table when it grows. Nothing Lisp runs meanwhile, so the
//! bit is never held across a safepoint.
//!
//! Tables with an equivalence written in Lisp (`Equivalence::Custom`) live in the prelude: they map a
//! hash to a list of associations, and come here as tables of numbers.

#[cfg(test)]
mod tests;

use crate::equality::{equal, equal_hash, eqv, eqv_hash, text_hash};
use crate::heap::object::{FLAG_OWN, FLAG_OWN_TOO, Kind};
use crate::heap::{Mutator, word};
use crate::raise::{Raise, Result};
use crate::text::{Text, bytes};
use crate::value::Value;
use core::hint;
use kyocho_sys::scheduling;

/// When two keys are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equivalence {
    /// `eq?`, and `eqv?`: numbers by value, which `eq?` leaves open.
    Eqv,
    /// `equal?`.
    Equal,
    /// `string=?`.
    String,
    /// A procedure: keys here are its hashes.
    Custom,
}

const EQUIVALENCES: [Equivalence; 4] =
    [Equivalence::Eqv, Equivalence::Equal, Equivalence::String, Equivalence::Custom];

// Payload words.
const EQUIVALENCE: usize = 0;
const COUNT: usize = 1;
const USED: usize = 2;
const INDEX: usize = 3;
const ENTRIES: usize = 4;
const PROCEDURES: usize = 5;
const WORDS: usize = 6;

/// What a table does not keep: an association is gone when that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weakness {
    /// Nothing: it keeps keys and values.
    None,
    /// Its keys.
    Keys,
    /// Its values.
    Values,
    /// Neither: an association is gone when one of them is.
    Both,
}

const FLAG_WEAK_KEYS: u8 = FLAG_OWN;
const FLAG_WEAK_VALUES: u8 = FLAG_OWN_TOO;

/// Words of an entry: hash, key, value.
const STRIDE: usize = 3;
/// The key of a deleted entry.
const DELETED: Value = Value::ABSENT;
/// Entries of a table without a size hint.
const CAPACITY_MIN: usize = 8;
/// An entry's number and one more must fit an index slot.
const CAPACITY_MAX: usize = 1 << 30;
/// Tries for the spin bit before the kernel thread gives the processor to another.
const SPINS: usize = 200;

/// A hash table whose spin bit is held.
#[derive(Debug)]
pub(crate) struct Table {
    object: Value,
    equivalence: Equivalence,
    weakness: Weakness,
    entries: Value,
    index: usize,
    mask: usize,
}

/// Where a key belongs.
enum Place {
    /// In this entry.
    Found(usize),
    /// In no entry yet: in this slot of the index.
    Free(usize),
}

/// A new table with room for `capacity` entries.
///
/// # Errors
/// No memory.
pub(crate) fn make(
    m: &mut Mutator,
    equivalence: Equivalence,
    procedures: Value,
    capacity: usize,
) -> Result {
    let (index, entries) = storage(m, capacity.max(CAPACITY_MIN))?;
    let zero = Value::fixnum(0);
    let equivalence = Value::fixnum(equivalence as i64);
    let fields: [Value; WORDS] = [equivalence, zero, zero, index, entries, procedures];
    Ok(m.object_of(Kind::HashTable, &fields)?)
}

/// An empty index and entries.
fn storage(m: &mut Mutator, capacity: usize) -> Result<(Value, Value)> {
    if capacity > CAPACITY_MAX {
        return Err(Raise::out_of_memory());
    }
    let slots = (2 * capacity).next_power_of_two();
    let index = m.object(Kind::Buffer, 0, slots / 2)?;
    let entries = m.vector(capacity * STRIDE, Value::fixnum(0))?;
    Ok((index, entries))
}

/// When the keys of `table` are the same; none where it is no table.
pub(crate) fn equivalence(table: Value) -> Option<Equivalence> {
    if !table.is_kind(Kind::HashTable) {
        return None;
    }
    EQUIVALENCES.get(table.field_at(EQUIVALENCE).as_fixnum()? as usize).copied()
}

impl Equivalence {
    /// The equivalence with this number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        EQUIVALENCES.get(usize::from(number)).copied()
    }
}

/// Has a new table keep an association only while its key, or its value, is reachable from elsewhere.
pub(crate) fn make_weak(table: Value, weakness: Weakness) {
    match weakness {
        Weakness::None => {}
        Weakness::Keys => table.set_flags(FLAG_WEAK_KEYS),
        Weakness::Values => table.set_flags(FLAG_WEAK_VALUES),
        Weakness::Both => table.set_flags(FLAG_WEAK_KEYS | FLAG_WEAK_VALUES),
    }
}

/// What the table does not keep.
pub(crate) fn weakness(table: Value) -> Weakness {
    let flags = if table.is_kind(Kind::HashTable) { table.flags() } else { 0 };
    match (flags & FLAG_WEAK_KEYS != 0, flags & FLAG_WEAK_VALUES != 0) {
        (false, false) => Weakness::None,
        (true, false) => Weakness::Keys,
        (false, true) => Weakness::Values,
        (true, true) => Weakness::Both,
    }
}

/// Gives a new table what `make` could not be given yet.
pub(crate) fn set_procedures(table: Value, procedures: Value) {
    table.set_field_at(PROCEDURES, procedures);
}

/// What `make` was given besides.
pub(crate) fn procedures(table: Value) -> Value {
    table.field(PROCEDURES).unwrap_or(Value::FALSE)
}

/// The hash of a key, as it is stored: a fixnum, never negative.
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
    /// Takes the table's spin bit; none where `object` is no table.
    #[inline]
    pub(crate) fn lock(object: Value) -> Option<Self> {
        let equivalence = equivalence(object)?;
        let mut tries = 0;
        while !object.try_lock() {
            tries += 1;
            if tries % SPINS == 0 {
                scheduling::yield_to_host();
            }
            hint::spin_loop();
        }
        let weakness = weakness(object);
        let mut table =
            Self { object, equivalence, weakness, entries: Value::NIL, index: 0, mask: 0 };
        table.look();
        Some(table)
    }

    /// Looks where the storage is.
    fn look(&mut self) {
        let index = self.object.field_at(INDEX);
        self.index = bytes::payload(index);
        self.mask = 2 * index.size_words() - 1;
        self.entries = self.object.field_at(ENTRIES);
    }

    /// Whether an equivalence written in Lisp rules it.
    pub(crate) fn is_custom(&self) -> bool {
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

    /// How many associations. Where keys or values are weak, it counts them one by one.
    pub(crate) fn count(&self) -> usize {
        if self.is_weak() {
            (0..self.number(USED)).filter(|&entry| !self.is_deleted(self.entries, entry)).count()
        } else {
            self.number(COUNT)
        }
    }

    fn capacity(&self) -> usize {
        self.entries.size_words() / STRIDE
    }

    fn key(&self, entry: usize) -> Value {
        let key = self.entries.field_at(entry * STRIDE + 1);
        match self.weakness {
            Weakness::None => key,
            Weakness::Both if self.is_deleted(self.entries, entry) => DELETED,
            Weakness::Keys | Weakness::Both => key.ephemeron_key().unwrap_or(DELETED),
            Weakness::Values => key.ephemeron_datum().unwrap_or(DELETED),
        }
    }

    fn value(&self, entry: usize) -> Value {
        let both = self.entries.field_at(entry * STRIDE + 1);
        match self.weakness {
            Weakness::None => self.entries.field_at(entry * STRIDE + 2),
            Weakness::Keys => both.ephemeron_datum().unwrap_or(Value::FALSE),
            Weakness::Values => both.ephemeron_key().unwrap_or(Value::FALSE),
            Weakness::Both => {
                let value = self.entries.field_at(entry * STRIDE + 2);
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

    /// Whether an entry, of these or of older entries, holds no association any more.
    fn is_deleted(&self, entries: Value, entry: usize) -> bool {
        let key = entries.field_at(entry * STRIDE + 1);
        let is_broken = |word| entries.field_at(entry * STRIDE + word).ephemeron_is_broken();
        key == DELETED
            || self.is_weak() && (is_broken(1) || self.weakness == Weakness::Both && is_broken(2))
    }

    /// Finds a key. Ends, because the index is never full.
    #[inline]
    fn place(&self, key: Value, hash: Value) -> Place {
        let mut slot = hash.as_fixnum().unwrap_or(0) as usize & self.mask;
        loop {
            let entry = word::load_quarter(self.index + 4 * slot) as usize;
            if entry == 0 {
                return Place::Free(slot);
            }
            let at = entry - 1;
            if self.entries.field_at(at * STRIDE) == hash && self.same(self.key(at), key) {
                return Place::Found(at);
            }
            slot = (slot + 1) & self.mask;
        }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: Value) -> Option<Value> {
        match self.place(key, hash(self.equivalence, key)) {
            Place::Found(entry) => Some(self.value(entry)),
            Place::Free(_) => None,
        }
    }

    /// Associates a key with a value.
    ///
    /// # Errors
    /// No memory to grow; the table is as it was.
    pub(crate) fn set(&mut self, m: &mut Mutator, key: Value, value: Value) -> Result<()> {
        let hash = hash(self.equivalence, key);
        let mut place = self.place(key, hash);
        if matches!(place, Place::Free(_)) && self.number(USED) == self.capacity() {
            self.grow(m)?;
            place = self.place(key, hash);
        }
        match place {
            Place::Found(entry) => self.replace(m, entry, value)?,
            Place::Free(slot) => {
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
                for (i, word) in words.into_iter().enumerate() {
                    self.entries.set_field_at(entry * STRIDE + i, word);
                }
                word::store_quarter(self.index + 4 * slot, entry as u32 + 1);
                self.set_number(USED, entry + 1);
                self.set_number(COUNT, self.number(COUNT) + 1);
            }
        }
        Ok(())
    }

    /// Gives the key of an entry another value.
    fn replace(&self, m: &mut Mutator, entry: usize, value: Value) -> Result<()> {
        match self.weakness {
            Weakness::None => self.entries.set_field_at(entry * STRIDE + 2, value),
            Weakness::Keys => {
                self.entries.field_at(entry * STRIDE + 1).set_ephemeron_datum(value);
            }
            // What an ephemeron hangs on never changes.
            Weakness::Values => {
                let both = m.ephemeron(value, self.key(entry))?;
                self.entries.set_field_at(entry * STRIDE + 1, both);
            }
            Weakness::Both => {
                let value = m.ephemeron(value, Value::FALSE)?;
                self.entries.set_field_at(entry * STRIDE + 2, value);
            }
        }
        Ok(())
    }

    /// Forgets a key; whether it was there.
    pub(crate) fn delete(&mut self, key: Value) -> bool {
        let Place::Found(entry) = self.place(key, hash(self.equivalence, key)) else {
            return false;
        };
        // The hash stays: it keeps the probe sequence of the keys behind it whole.
        self.entries.set_field_at(entry * STRIDE + 1, DELETED);
        self.entries.set_field_at(entry * STRIDE + 2, Value::FALSE);
        self.set_number(COUNT, self.number(COUNT) - 1);
        true
    }

    /// Moves to storage for twice what is alive, without what was deleted.
    fn grow(&mut self, m: &mut Mutator) -> Result<()> {
        let capacity = (2 * self.count()).max(CAPACITY_MIN);
        let (index, entries) = storage(m, capacity)?;
        self.move_to(index, entries);
        Ok(())
    }

    fn move_to(&mut self, index: Value, entries: Value) {
        let (old, used) = (self.entries, self.number(USED));
        self.object.set_field_at(INDEX, index);
        self.object.set_field_at(ENTRIES, entries);
        self.look();
        let mut moved = 0;
        for entry in 0..used {
            if self.is_deleted(old, entry) {
                continue;
            }
            for i in 0..STRIDE {
                self.entries.set_field_at(moved * STRIDE + i, old.field_at(entry * STRIDE + i));
            }
            moved += 1;
            let mut slot =
                old.field_at(entry * STRIDE).as_fixnum().unwrap_or(0) as usize & self.mask;
            while word::load_quarter(self.index + 4 * slot) != 0 {
                slot = (slot + 1) & self.mask;
            }
            word::store_quarter(self.index + 4 * slot, moved as u32);
        }
        self.set_number(USED, moved);
        self.set_number(COUNT, moved);
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// No memory for the new, small storage; the table is as it was.
    pub(crate) fn clear(&mut self, m: &mut Mutator) -> Result<()> {
        let (index, entries) = storage(m, CAPACITY_MIN)?;
        self.set_number(USED, 0);
        self.set_number(COUNT, 0);
        self.move_to(index, entries);
        Ok(())
    }

    /// A table with the same associations.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn copy(&self, m: &mut Mutator) -> Result {
        let new = make(m, self.equivalence, procedures(self.object), self.count())?;
        make_weak(new, self.weakness);
        let Some(mut copy) = Self::lock(new) else { return Ok(new) };
        for (key, value) in self.associations() {
            copy.set(m, key, value)?;
        }
        Ok(new)
    }

    /// The associations, oldest first.
    pub(crate) fn associations(&self) -> impl DoubleEndedIterator<Item = (Value, Value)> + '_ {
        (0..self.number(USED))
            .filter(|&entry| self.key(entry) != DELETED)
            .map(|entry| (self.key(entry), self.value(entry)))
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.object.unlock();
    }
}
