//! A thread's cell cache (paper 4, §5): free memory that one thread may allocate from without a
//! request.
//!
//! ```text
//!  current run   next ......... limit      cons takes 16 bytes at next
//!  further runs  [start, end) ...          taken when the current one is used up
//! ```
//!
//! The owner fills the cache, or the system-call thread while the owner waits. The collector
//! empties every cache while the world is stopped. So the words are shared and atomic (plain `mov`
//! on x86-64), although only one thread accesses them at any moment. The number of runs in a cache
//! is bounded.

use crate::account::Account;
use crate::heap::Heap;
use crate::heap::object::{GRANULE_BYTES, Header, Kind, object_bytes};
use crate::heap::word::{self, WORD_BYTES};
use crate::value::Value;
use core::cell::Cell;
use core::marker::PhantomData;
use kyocho_sys::prim::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// Runs in addition to the current one.
pub(crate) const RUNS_MAX: usize = 6;

/// A run of free memory, in addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Run {
    pub(crate) const fn bytes(self) -> usize {
        self.end - self.start
    }
}

/// The words of a cache, shared with the heap.
#[derive(Debug, Default)]
pub struct CellWords {
    next: AtomicUsize,
    limit: AtomicUsize,
    runs: [(AtomicUsize, AtomicUsize); RUNS_MAX],
    waiting: AtomicUsize,
    taken_granules: AtomicU64,
    /// The account that pays, if any.
    account: Option<Arc<Account>>,
}

/// One thread's cache of free cells.
#[derive(Debug)]
pub struct Cells {
    words: Arc<CellWords>,
    slot: usize,
    heap: Arc<Heap>,
    /// Only the owner takes cells: the cache cannot be shared between kernel threads.
    _own: PhantomData<Cell<()>>,
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.heap.retire(self.slot, &self.words);
    }
}

impl CellWords {
    pub(crate) fn of(account: Option<Arc<Account>>) -> Self {
        Self { account, ..Self::default() }
    }

    /// The account that pays for its cells.
    #[must_use]
    pub const fn account(&self) -> Option<&Arc<Account>> {
        self.account.as_ref()
    }

    #[inline(always)]
    fn next(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_next(&self, next: usize) {
        self.next.store(next, Ordering::Relaxed);
    }

    fn set_current(&self, run: Run) {
        self.next.store(run.start, Ordering::Relaxed);
        self.limit.store(run.end, Ordering::Relaxed);
    }

    fn run(&self, i: usize) -> Run {
        let (start, end) = &self.runs[i];
        Run { start: start.load(Ordering::Relaxed), end: end.load(Ordering::Relaxed) }
    }

    /// Free bytes in all runs.
    pub fn free_bytes(&self) -> usize {
        let waiting = self.waiting.load(Ordering::Relaxed);
        let behind: usize = (0..waiting).map(|i| self.run(i).bytes()).sum();
        self.limit() - self.next() + behind
    }

    /// How many runs can be added.
    pub fn room(&self) -> usize {
        RUNS_MAX - self.waiting.load(Ordering::Relaxed)
    }

    /// Whether some run has at least `bytes` bytes.
    pub fn fits(&self, bytes: usize) -> bool {
        self.limit() - self.next() >= bytes || self.fits_behind(bytes)
    }

    fn fits_behind(&self, bytes: usize) -> bool {
        (0..self.waiting.load(Ordering::Relaxed)).any(|i| self.run(i).bytes() >= bytes)
    }

    /// Adds a run. The caller has checked `room`.
    pub(crate) fn push(&self, run: Run) {
        self.taken_granules.fetch_add((run.bytes() / GRANULE_BYTES) as u64, Ordering::Relaxed);
        if self.next() == self.limit() {
            self.set_current(run);
            return;
        }
        if self.limit() == run.start {
            self.limit.store(run.end, Ordering::Relaxed);
            return;
        }
        let waiting = self.waiting.load(Ordering::Relaxed);
        let (start, end) = &self.runs[waiting];
        start.store(run.start, Ordering::Relaxed);
        end.store(run.end, Ordering::Relaxed);
        self.waiting.store(waiting + 1, Ordering::Relaxed);
    }

    /// Switches to the next run; `false` if there is none.
    fn advance(&self) -> bool {
        let Some(waiting) = self.waiting.load(Ordering::Relaxed).checked_sub(1) else {
            return false;
        };
        self.set_current(self.run(waiting));
        self.waiting.store(waiting, Ordering::Relaxed);
        true
    }

    /// Empties the cache. Passes each non-empty run to `give`.
    pub(crate) fn drain(&self, mut give: impl FnMut(Run)) {
        let current = Run { start: self.next(), end: self.limit() };
        self.set_current(Run::default());
        let waiting = self.waiting.swap(0, Ordering::Relaxed);
        for run in core::iter::once(current).chain((0..waiting).map(|i| self.run(i))) {
            if run.bytes() > 0 {
                give(run);
            }
        }
    }

    pub(crate) fn taken_granules(&self) -> u64 {
        self.taken_granules.load(Ordering::Relaxed)
    }
}

impl Cells {
    pub(crate) fn new(words: Arc<CellWords>, slot: usize, heap: Arc<Heap>) -> Self {
        Self { words, slot, heap, _own: PhantomData }
    }

    /// The words of its runs, shared with the thread that fills it.
    #[must_use]
    pub const fn words(&self) -> &Arc<CellWords> {
        &self.words
    }

    /// A pair from the cache; `None` if it is empty.
    #[inline(always)]
    #[must_use]
    pub fn try_cons(&self, car: Value, cdr: Value) -> Option<Value> {
        let at = self.words.next();
        if at == self.words.limit() {
            return self.cons_from_next_run(car, cdr);
        }
        word::initialise(at, car.to_word());
        word::initialise(at + WORD_BYTES, cdr.to_word());
        self.words.set_next(at + GRANULE_BYTES);
        Some(Value::pair_at(at))
    }

    #[cold]
    fn cons_from_next_run(&self, car: Value, cdr: Value) -> Option<Value> {
        if self.words.advance() { self.try_cons(car, cdr) } else { None }
    }

    /// An object from the cache with a zero payload; `None` if no run is long enough. The rest of a
    /// run that is too short is lost until the next collection.
    #[inline(always)]
    #[must_use]
    pub fn try_object(&self, kind: Kind, flags: u8, words: usize) -> Option<Value> {
        let at = self.try_raw(object_bytes(words))?;
        Some(initialise_object(at, kind, flags, words))
    }

    /// A flonum, if the cache has room for one.
    #[inline(always)]
    #[must_use]
    pub fn try_flonum(&self, number: f64) -> Option<Value> {
        let at = self.try_raw(object_bytes(1))?;
        word::initialise(at, Header::new(Kind::Flonum, 0, 1).to_word());
        word::initialise(at + WORD_BYTES, number.to_bits());
        Some(Value::object_at(at))
    }

    /// Memory of `bytes` bytes from the cache, a multiple of a granule. The caller initialises it.
    #[inline(always)]
    pub(crate) fn try_raw(&self, bytes: usize) -> Option<usize> {
        let at = self.words.next();
        if self.words.limit() - at < bytes {
            return self.raw_from_next_run(bytes);
        }
        self.words.set_next(at + bytes);
        Some(at)
    }

    #[cold]
    fn raw_from_next_run(&self, bytes: usize) -> Option<usize> {
        if !self.words.fits_behind(bytes) {
            return None;
        }
        while self.words.limit() - self.words.next() < bytes {
            self.words.advance();
        }
        self.try_raw(bytes)
    }

    /// Free cells in the cache.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.words.free_bytes() / GRANULE_BYTES
    }

    /// Cells that this cache has received so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.words.taken_granules()
    }
}

/// Writes a header and a zero payload into free memory.
#[inline(always)]
fn initialise_object(at: usize, kind: Kind, flags: u8, words: usize) -> Value {
    word::initialise(at, Header::new(kind, flags, words).to_word());
    for i in 1..=words {
        word::initialise(at + WORD_BYTES * i, 0);
    }
    Value::object_at(at)
}
