//! A microprocess as its user scheduler sees it.
//!
//! All data lies in the record of the microprocess, so a scheduler allocates nothing. The words are
//! relaxed atomics, and records are never unmapped. So an entry that a scheduler keeps too long
//! refers to the next user of the slot, which is harmless to memory safety.

use core::{fmt, ptr};

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::data::heap::{Linked, Links};
use crate::data::priority::Priority;
use crate::processor::record::Record;

/// The kind of queue in which user schedulers keep entries.
#[derive(Debug)]
pub(crate) enum Ready {}

/// The part of a record that belongs to the user scheduler.
pub(crate) struct Scheduling {
    links: Links<Record>,
    parameter: AtomicU64,
    words: [AtomicU64; Entry::WORDS],
    /// Enqueued at a user scheduler, and not removed yet.
    queued: AtomicBool,
}

impl Scheduling {
    pub(crate) const fn new() -> Self {
        Self {
            links: Links::new(),
            parameter: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; Entry::WORDS],
            queued: AtomicBool::new(false),
        }
    }

    /// Resets it for a new microprocess.
    #[inline]
    pub(crate) fn renew(&self) {
        self.parameter.store(0, Ordering::Relaxed);
    }

    /// Clears what a user scheduler stored, before another one begins.
    pub(crate) fn reset(&self) {
        self.links.forget();
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    pub(crate) fn parameter(&self) -> u64 {
        self.parameter.load(Ordering::Relaxed)
    }

    pub(crate) fn set_parameter(&self, parameter: u64) {
        self.parameter.store(parameter, Ordering::Relaxed);
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed)
    }

    pub(crate) fn set_queued(&self, queued: bool) {
        self.queued.store(queued, Ordering::Relaxed);
    }
}

impl Linked<Ready> for Record {
    fn links(&self) -> &Links<Self> {
        &self.scheduling.links
    }
}

/// A microprocess as its user scheduler sees it: an id, a priority, a parameter, and memory for the
/// scheduler's own use.
#[derive(Clone, Copy)]
pub struct Entry(&'static Record);

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Eq for Entry {}

impl Entry {
    /// Words for the scheduler's own use.
    pub const WORDS: usize = 2;

    pub(crate) fn of(record: &'static Record) -> Self {
        Self(record)
    }

    pub(crate) fn record(self) -> &'static Record {
        self.0
    }

    /// The id of the microprocess, which no other one of the process has or had.
    #[must_use]
    pub fn id(self) -> u64 {
        self.0.id()
    }

    /// Its priority.
    #[must_use]
    pub fn priority(self) -> Priority {
        Priority::new(self.0.level()).unwrap_or_default()
    }

    /// The value set last by [`Builder::parameter`](crate::Builder::parameter) or
    /// [`Microprocess::set_parameter`](crate::Microprocess::set_parameter); 0 at first. Its meaning
    /// is up to the scheduler: a deadline or tickets, for example.
    #[must_use]
    pub fn parameter(self) -> u64 {
        self.0.scheduling.parameter()
    }

    /// Whether it must stay on its virtual processor.
    #[must_use]
    pub fn is_pinned(self) -> bool {
        self.0.is_pinned()
    }

    /// The scheduler's word `index`; 0 when the scheduler first sees the microprocess.
    ///
    /// # Panics
    /// `index` is not below [`WORDS`](Self::WORDS).
    #[must_use]
    pub fn word(self, index: usize) -> u64 {
        self.0.scheduling.words[index].load(Ordering::Relaxed)
    }

    /// Sets the scheduler's word `index`.
    ///
    /// # Panics
    /// `index` is not below [`WORDS`](Self::WORDS).
    pub fn set_word(self, index: usize, value: u64) {
        self.0.scheduling.words[index].store(value, Ordering::Relaxed);
    }
}
