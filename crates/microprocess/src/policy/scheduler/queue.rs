//! Queues for user schedulers. Their links lie in the entries, so they never allocate.
//!
//! **Invariant:** an entry is in at most one of these queues at a time. A scheduler that breaks
//! this confuses only its own queues, and is [replaced](super::Fault) once a wrong pick shows it.

use core::fmt;

use super::Entry;
use crate::data::heap::{self, Linked, Links};
use crate::processor::record::Record;
use crate::processor::scheduler::Ready;

fn links(entry: Entry) -> &'static Links<Record> {
    Linked::<Ready>::links(entry.record())
}

/// A list, first to last. Everything except iteration takes constant time.
#[derive(Debug, Default)]
pub struct List {
    first: Option<Entry>,
    last: Option<Entry>,
}

impl List {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None, last: None }
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The first entry.
    #[must_use]
    pub fn first(&self) -> Option<Entry> {
        self.first
    }

    /// Appends `entry`.
    pub fn push_back(&mut self, entry: Entry) {
        let links = links(entry);
        links.forget();
        links.enter(true);
        links.previous.set(self.last.map(Entry::record));
        match self.last.replace(entry) {
            None => self.first = Some(entry),
            Some(last) => self::links(last).next.set(Some(entry.record())),
        }
    }

    /// Puts `entry` before all others.
    pub fn push_front(&mut self, entry: Entry) {
        let links = links(entry);
        links.forget();
        links.enter(true);
        links.next.set(self.first.map(Entry::record));
        match self.first.replace(entry) {
            None => self.last = Some(entry),
            Some(first) => self::links(first).previous.set(Some(entry.record())),
        }
    }

    /// Removes and returns the first entry.
    pub fn pop_front(&mut self) -> Option<Entry> {
        self.first.inspect(|&first| self.remove(first))
    }

    /// Removes and returns the last entry.
    pub fn pop_back(&mut self) -> Option<Entry> {
        self.last.inspect(|&last| self.remove(last))
    }

    /// Removes `entry`; does nothing if it is in no queue.
    pub fn remove(&mut self, entry: Entry) {
        let links = links(entry);
        if !links.enter(false) {
            return;
        }
        let (next, previous) = (links.next.take(), links.previous.take());
        match previous {
            None => self.first = next.map(Entry::of),
            Some(previous) => Linked::<Ready>::links(previous).next.set(next),
        }
        match next {
            None => self.last = previous.map(Entry::of),
            Some(next) => Linked::<Ready>::links(next).previous.set(previous),
        }
    }

    /// The entries, first to last.
    pub fn iter(&self) -> impl Iterator<Item = Entry> {
        core::iter::successors(self.first, |&entry| links(entry).next.get().map(Entry::of))
    }
}

/// Entries ordered by key, least first. Insertion takes constant time, removal logarithmic time.
pub struct Heap(heap::Heap<Record, Ready>);

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("first", &self.first()).finish_non_exhaustive()
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

impl Heap {
    /// An empty heap.
    #[must_use]
    pub const fn new() -> Self {
        Self(heap::Heap::new())
    }

    /// Whether the heap is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.least().is_none()
    }

    /// The entry with the least key.
    #[must_use]
    pub fn first(&self) -> Option<Entry> {
        self.0.first().map(Entry::of)
    }

    /// The least key.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        self.0.least()
    }

    /// Adds `entry` under `key`.
    pub fn push(&mut self, entry: Entry, key: u64) {
        self.0.insert(entry.record(), key);
    }

    /// Removes and returns an entry with the least key; which one is unspecified if there are
    /// several.
    pub fn pop(&mut self) -> Option<Entry> {
        self.0.take_up_to(u64::MAX).map(Entry::of)
    }

    /// Removes `entry`; does nothing if it is in no queue.
    pub fn remove(&mut self, entry: Entry) {
        self.0.remove(entry.record());
    }
}

/// One list for each level, and a word that says which of them are not empty.
///
/// **Invariant:** bit `level` of `occupied` is set if and only if `lists[level]` has entries.
#[derive(Debug)]
pub struct Levels {
    occupied: u64,
    lists: [List; 64],
}

impl Default for Levels {
    fn default() -> Self {
        Self::new()
    }
}

impl Levels {
    /// Empty levels.
    #[must_use]
    pub const fn new() -> Self {
        Self { occupied: 0, lists: [const { List::new() }; 64] }
    }

    /// The highest level with entries.
    #[must_use]
    pub fn highest(&self) -> Option<u8> {
        self.occupied.checked_ilog2().map(|level| level as u8)
    }

    /// Appends `entry` to `level`, which is below 64.
    pub fn push_back(&mut self, entry: Entry, level: u8) {
        self.lists[usize::from(level)].push_back(entry);
        self.note(entry, level);
    }

    /// Puts `entry` at the front of `level`, which is below 64.
    pub fn push_front(&mut self, entry: Entry, level: u8) {
        self.lists[usize::from(level)].push_front(entry);
        self.note(entry, level);
    }

    fn note(&mut self, entry: Entry, level: u8) {
        links(entry).set_key(u64::from(level));
        self.occupied |= 1 << level;
    }

    /// Removes and returns the first entry of the highest level that is not empty.
    pub fn pop(&mut self) -> Option<Entry> {
        let first = self.lists[usize::from(self.highest()?)].first()?;
        self.remove(first);
        Some(first)
    }

    /// Removes and returns the first entry of `level`.
    pub fn pop_from(&mut self, level: u8) -> Option<Entry> {
        let first = self.lists[usize::from(level)].first()?;
        self.remove(first);
        Some(first)
    }

    /// Removes `entry`; does nothing if it is in no queue.
    pub fn remove(&mut self, entry: Entry) {
        // The index stays in bounds even if a broken scheduler wrote another key.
        let level = links(entry).key() as usize % self.lists.len();
        self.lists[level].remove(entry);
        if self.lists[level].is_empty() {
            self.occupied &= !(1 << level);
        }
    }
}
