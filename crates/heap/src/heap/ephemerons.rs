//! Ephemerons: a datum that is reachable while its key is, and from elsewhere (Hayes, 1997).
//!
//! ```text
//!   scanned --> pending --all else is marked, the key is not--> waiting --all is marked--> broken
//!                  ^                                               |
//!                  +--------------the key is marked----------------+
//! ```
//!
//! An ephemeron comes to `pending` once when it is scanned and once when its key is found: a chain of n, each the key of the next,
//! costs n log n in whatever order. Their keys never change, so that no key is younger than its ephemeron.

use crate::heap::object::Kind;
use crate::heap::word::{self, WORD_BYTES};
use crate::heap::{Mutator, OutOfMemory, barrier};
use crate::value::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The key of a broken one.
const BROKEN: Value = Value::ABSENT;

const KEY: usize = 0;
const DATUM: usize = 1;

/// Addresses of keys that are not marked, and the ephemerons that have them.
pub(super) type Awaited = BTreeSet<(usize, usize)>;

/// What marking has met.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Ephemerons to be looked at when all else is marked.
    pending: Vec<Value>,
    /// Awaited keys that were marked.
    keys: Vec<usize>,
    /// Guardians, to be looked at when there is nothing else.
    guardians: Vec<Value>,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.pending.extend(other.pending);
        self.keys.extend(other.keys);
        self.guardians.extend(other.guardians);
    }
}

/// Ephemerons that a marker has found. What is awaited changes while it marks alone, and not in the hands of those who help.
#[derive(Debug, Default)]
pub(super) struct Ephemerons {
    seen: Seen,
    awaited: Arc<Awaited>,
}

impl Ephemerons {
    /// One was scanned.
    pub(super) fn scanned(&mut self, ephemeron: Value) {
        self.seen.pending.push(ephemeron);
    }

    /// A guardian was scanned.
    pub(super) fn guardian(&mut self, guardian: Value) {
        self.seen.guardians.push(guardian);
    }

    /// The guardians that were scanned since the last time.
    pub(super) fn take_guardians(&mut self) -> Vec<Value> {
        core::mem::take(&mut self.seen.guardians)
    }

    /// One to look at: all is marked but what hangs on those.
    pub(super) fn next(&mut self) -> Option<Value> {
        for key in core::mem::take(&mut self.seen.keys) {
            self.retry(key);
        }
        self.seen.pending.pop()
    }

    /// Its key, an object of the heap, is not marked yet.
    pub(super) fn wait(&mut self, ephemeron: Value) {
        let awaited = Arc::make_mut(&mut self.awaited);
        awaited.insert((key_of(ephemeron).address(), ephemeron.address()));
    }

    /// An object was marked: whoever waits for it is looked at again.
    pub(super) fn found(&mut self, value: Value) {
        let key = value.address();
        if self.awaited.range((key, 0)..=(key, usize::MAX)).next().is_some() {
            self.seen.keys.push(key);
        }
    }

    /// Looks again at those that wait for a key.
    fn retry(&mut self, key: usize) {
        let awaited = Arc::make_mut(&mut self.awaited);
        while let Some(&(key, ephemeron)) = awaited.range((key, 0)..=(key, usize::MAX)).next() {
            awaited.remove(&(key, ephemeron));
            self.seen.pending.push(Value::object_at(ephemeron));
        }
    }

    /// For one who helps.
    pub(super) fn awaited(&self) -> Arc<Awaited> {
        Arc::clone(&self.awaited)
    }

    /// Of one who helps.
    pub(super) fn await_keys(&mut self, awaited: Arc<Awaited>) {
        self.awaited = awaited;
    }

    /// Of one who helps: what it has met.
    pub(super) fn take_seen(&mut self) -> Seen {
        core::mem::take(&mut self.seen)
    }

    /// What others have met.
    pub(super) fn see(&mut self, seen: Seen) {
        self.seen.add(seen);
    }

    /// Breaks those that wait still.
    pub(super) fn break_waiting(&mut self) {
        for &(_, ephemeron) in &*core::mem::take(&mut self.awaited) {
            // Nothing is marked any more: no barrier.
            word::publish(ephemeron + WORD_BYTES * (KEY + 1), BROKEN.to_word());
            word::publish(ephemeron + WORD_BYTES * (DATUM + 1), Value::FALSE.to_word());
        }
    }
}

/// Without keeping it: for the collector.
pub(super) fn key_of(ephemeron: Value) -> Value {
    ephemeron.field_at(KEY)
}

/// Without keeping it: for the collector.
pub(super) fn datum_of(ephemeron: Value) -> Value {
    ephemeron.field_at(DATUM)
}

impl Mutator {
    /// An ephemeron.
    ///
    /// # Errors
    /// When the heap's limit is reached.
    pub fn ephemeron(&mut self, key: Value, datum: Value) -> Result<Value, OutOfMemory> {
        let ephemeron = self.object_of(Kind::Ephemeron, &[key, datum])?;
        // A marker that comes by need not know that the ephemeron is younger than its cycle.
        barrier::keep(key);
        Ok(ephemeron)
    }
}

impl Value {
    /// The key of an ephemeron, kept from now on; none where it is broken, or this is none.
    pub fn ephemeron_key(self) -> Option<Self> {
        self.ephemeron_field(KEY)
    }

    /// The datum of an ephemeron, kept from now on; none where it is broken, or this is none.
    pub fn ephemeron_datum(self) -> Option<Self> {
        self.ephemeron_field(DATUM)
    }

    /// Gives a whole ephemeron another datum.
    pub fn set_ephemeron_datum(self, datum: Self) {
        if self.is_kind(Kind::Ephemeron) && !self.ephemeron_is_broken() {
            self.set_field_at(DATUM, datum);
        }
    }

    /// Whether the key of this ephemeron was found garbage.
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
