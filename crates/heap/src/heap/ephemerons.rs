//! Ephemerons: the datum is kept alive only while the key is reachable (Hayes, 1997).
//!
//! ```text
//!   scanned --> pending --all else is marked, the key is not--> waiting --all is marked--> broken
//!                  ^                                               |
//!                  +--------------the key is marked----------------+
//! ```
//!
//! An ephemeron becomes pending when it is scanned, and again when its key is marked. So a chain of
//! n ephemerons, each datum the key of the next, costs n log n in any order. Keys never change, so
//! no key is younger than its ephemeron.

use crate::heap::object::Kind;
use crate::heap::word::{self, WORD_BYTES};
use crate::heap::{Mutator, OutOfMemory, barrier};
use crate::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The key of a broken ephemeron.
const BROKEN: Value = Value::ABSENT;

const KEY: usize = 0;
const DATUM: usize = 1;

/// Pairs of addresses: of an unmarked key, and of an ephemeron that waits for it.
pub(super) type Awaited = BTreeSet<(usize, usize)>;

/// What a helper has found.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Ephemerons to be examined when all else is marked.
    pending: Vec<Value>,
    /// Awaited keys that were marked.
    keys: Vec<usize>,
    /// Guardians to be examined last.
    guardians: Vec<Value>,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.pending.extend(other.pending);
        self.keys.extend(other.keys);
        self.guardians.extend(other.guardians);
    }
}

/// The ephemerons that a marker has found. The set of awaited keys changes only while the maker
/// marks alone; helpers have a fixed copy.
#[derive(Debug, Default)]
pub(super) struct Ephemerons {
    seen: Seen,
    awaited: Arc<Awaited>,
}

impl Ephemerons {
    /// Records that an ephemeron was scanned.
    pub(super) fn scanned(&mut self, ephemeron: Value) {
        self.seen.pending.push(ephemeron);
    }

    /// Records that a guardian was scanned.
    pub(super) fn guardian(&mut self, guardian: Value) {
        self.seen.guardians.push(guardian);
    }

    /// The guardians scanned since the last call.
    pub(super) fn take_guardians(&mut self) -> Vec<Value> {
        core::mem::take(&mut self.seen.guardians)
    }

    /// A pending ephemeron. Everything else reachable is marked.
    pub(super) fn next(&mut self) -> Option<Value> {
        for key in core::mem::take(&mut self.seen.keys) {
            self.retry(key);
        }
        self.seen.pending.pop()
    }

    /// Makes an ephemeron wait for its key, an unmarked heap object.
    pub(super) fn wait(&mut self, ephemeron: Value) {
        let awaited = Arc::make_mut(&mut self.awaited);
        awaited.insert((key_of(ephemeron).address(), ephemeron.address()));
    }

    /// Records that an object was marked: ephemerons that wait for it become pending.
    pub(super) fn found(&mut self, value: Value) {
        let key = value.address();
        if self.awaited.range((key, 0)..=(key, usize::MAX)).next().is_some() {
            self.seen.keys.push(key);
        }
    }

    /// Makes the ephemerons that wait for a key pending.
    fn retry(&mut self, key: usize) {
        let awaited = Arc::make_mut(&mut self.awaited);
        while let Some(&(key, ephemeron)) = awaited.range((key, 0)..=(key, usize::MAX)).next() {
            awaited.remove(&(key, ephemeron));
            self.seen.pending.push(Value::object_at(ephemeron));
        }
    }

    /// The awaited keys, for a helper.
    pub(super) fn awaited(&self) -> Arc<Awaited> {
        Arc::clone(&self.awaited)
    }

    /// Sets the awaited keys of a helper.
    pub(super) fn await_keys(&mut self, awaited: Arc<Awaited>) {
        self.awaited = awaited;
    }

    /// Returns what a helper has found.
    pub(super) fn take_seen(&mut self) -> Seen {
        core::mem::take(&mut self.seen)
    }

    /// Adds what a helper has found.
    pub(super) fn see(&mut self, seen: Seen) {
        self.seen.add(seen);
    }

    /// Breaks the ephemerons that still wait.
    pub(super) fn break_waiting(&mut self) {
        for &(_, ephemeron) in &*core::mem::take(&mut self.awaited) {
            // Marking is over, so no barrier is needed.
            word::publish(ephemeron + WORD_BYTES * (KEY + 1), BROKEN.to_word());
            word::publish(ephemeron + WORD_BYTES * (DATUM + 1), Value::FALSE.to_word());
        }
    }
}

/// The key, without keeping it alive: for the collector.
pub(super) fn key_of(ephemeron: Value) -> Value {
    ephemeron.field_at(KEY)
}

/// The datum, without keeping it alive: for the collector.
pub(super) fn datum_of(ephemeron: Value) -> Value {
    ephemeron.field_at(DATUM)
}

impl Mutator {
    /// A new ephemeron.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn ephemeron(&mut self, key: Value, datum: Value) -> Result<Value, OutOfMemory> {
        let ephemeron = self.object_of(Kind::Ephemeron, &[key, datum])?;
        // A marker that scans the ephemeron need not know that it is younger than the cycle.
        barrier::keep(key);
        Ok(ephemeron)
    }
}

impl Value {
    /// The key of an ephemeron; `None` if it is broken, or this is not an ephemeron. The cycle in
    /// progress keeps the key alive.
    pub fn ephemeron_key(self) -> Option<Self> {
        self.ephemeron_field(KEY)
    }

    /// The datum of an ephemeron; `None` if it is broken, or this is not an ephemeron. The cycle in
    /// progress keeps the datum alive.
    pub fn ephemeron_datum(self) -> Option<Self> {
        self.ephemeron_field(DATUM)
    }

    /// Replaces the datum of an ephemeron that is not broken.
    pub fn set_ephemeron_datum(self, datum: Self) {
        if self.is_kind(Kind::Ephemeron) && !self.ephemeron_is_broken() {
            self.set_field_at(DATUM, datum);
        }
    }

    /// Whether this ephemeron is broken.
    pub fn ephemeron_is_broken(self) -> bool {
        self.is_kind(Kind::Ephemeron) && self.field_at(KEY) == BROKEN
    }

    fn ephemeron_field(self, i: usize) -> Option<Self> {
        let is_whole = self.is_kind(Kind::Ephemeron) && !self.ephemeron_is_broken();
        let value = is_whole.then(|| self.field_at(i))?;
        barrier::keep(value);
        Some(value)
    }
}
