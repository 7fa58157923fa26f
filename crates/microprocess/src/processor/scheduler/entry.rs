//! A microprocess as its user scheduler sees it.
//!
//! All of it lies in the record of the microprocess, so a scheduler allocates nothing. The words are relaxed atomic ones, and records
//! are never unmapped: an entry that a scheduler kept too long names the next user of the slot, and nothing worse.

use core::{fmt, ptr};

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::data::heap::{Linked, Links};
use crate::data::priority::Priority;
use crate::processor::record::Record;

/// The kind of queues that user schedulers keep entries in.
#[derive(Debug)]
pub(crate) enum Ready {}

/// What a record holds for the user scheduler.
pub(crate) struct Scheduling {
    links: Links<Record>,
    parameter: AtomicU64,
    words: [AtomicU64; Entry::WORDS],
    /// Handed to a user scheduler, and not yet back.
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

    /// For a new microprocess.
    #[inline]
    pub(crate) fn renew(&self) {
        self.parameter.store(0, Ordering::Relaxed);
    }

    /// What a user scheduler left there means nothing any more: another one begins.
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

/// A microprocess as its user scheduler sees it: a name, a priority, a parameter, and memory for the scheduler's own use.
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

    /// The number of the microprocess in its runtime.
    #[must_use]
    pub fn id(self) -> u64 {
        self.0.id()
    }

    /// Its priority.
    #[must_use]
    pub fn priority(self) -> Priority {
        Priority::new(self.0.level()).unwrap_or_default()
    }

    /// What [`Builder::parameter`](crate::Builder::parameter) or
    /// [`Microprocess::set_parameter`](crate::Microprocess::set_parameter) said last: a deadline, tickets, whatever the scheduler
    /// makes of it; 0 to begin with.
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
