//! Marking with an explicit, bounded stack.
//!
//! An object is marked when it is found, and scanned when it is popped. If the stack is full, the
//! object remains marked but unscanned, and its block is recorded. When the stack is empty, the
//! recorded blocks are walked, and the children of every marked object in them are examined again.
//! Each overflow marks one more object, so this terminates. The bytes of an overflowed object are
//! counted when it overflows. Rust objects and ephemerons never overflow, because a second scan
//! would count their bytes twice. Long vectors are scanned in pieces, and lists along their cdr, so
//! that neither fills the stack.
//!
//! With several virtual processors, a marker that takes long gets help (`marker/sharing.rs`).

use crate::heap::ephemerons::{self, Ephemerons};
use crate::heap::marks::{BLOCK_BYTES, Company, LINE_BYTES, Marks};
use crate::heap::object::{Header, Kind, object_bytes};
use crate::heap::word::{self, WORD_BYTES};
use crate::value::Value;
use core::fmt;
use std::sync::Arc;

mod sharing;

use sharing::Role;
pub(crate) use sharing::Team;

/// Payload words of one object scanned in one step.
const PIECE_WORDS: usize = 256;

/// Pairs of a list scanned in one step.
const LIST_PAIRS: usize = 256;

/// Scans between two checks of a marker that is alone.
const BATCH: usize = 4096;

/// Marked objects that are still to be scanned.
#[derive(Debug, Default)]
struct Work {
    stack: Vec<Value>,
    /// Objects longer than a piece, and the payload word to continue from.
    partial: Vec<(Value, usize)>,
    /// Blocks with marked objects that were not scanned.
    overflowed: Vec<usize>,
}

/// Sums of what marking has found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) overflows: usize,
    pub(crate) marked_bytes: usize,
    /// Bytes outside the heap that belong to marked objects.
    held_bytes: usize,
    /// Bytes that helpers have marked.
    pub(crate) helped_bytes: usize,
}

/// Marks everything reachable from its roots.
pub struct Marker {
    marks: Arc<Marks>,
    base: usize,
    /// Offset from the base. Objects from here on are younger than the cycle and need no mark.
    reach: usize,
    /// Offset from the base. Objects from here on need a closer check. Equal to `reach`, but zero
    /// while roots are recorded or keys of ephemerons are awaited.
    frontier: usize,
    /// Recorded roots; `None` if roots are marked at once.
    noted: Option<Vec<Value>>,
    work: Work,
    stack_max: usize,
    ephemerons: Ephemerons,
    pub(crate) tally: Tally,
    /// Whether other markers run at the same time.
    company: Company,
    /// Scans between two checks whether others need work.
    batch: usize,
    role: Role,
}

impl fmt::Debug for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marker").field("work", &self.work).finish_non_exhaustive()
    }
}

/// Whether the object must be scanned exactly once. Such an object goes on the stack even if the
/// stack is full.
fn is_scanned_once(value: Value) -> bool {
    value.is_kind(Kind::Foreign) || value.is_kind(Kind::Ephemeron)
}

fn bytes_of(value: Value) -> usize {
    if value.is_pair() { 2 * WORD_BYTES } else { object_bytes(Header::at(value.address()).words()) }
}

impl Work {
    const fn is_empty(&self) -> bool {
        self.stack.is_empty() && self.partial.is_empty() && self.overflowed.is_empty()
    }
}

impl Marker {
    /// A marker that is alone.
    pub(crate) fn new(marks: Arc<Marks>, base: usize, stack_max: usize) -> Self {
        let stack = Vec::with_capacity(stack_max.min(4096));
        Self {
            marks,
            base,
            reach: usize::MAX,
            frontier: usize::MAX,
            noted: None,
            work: Work { stack, ..Work::default() },
            stack_max,
            ephemerons: Ephemerons::default(),
            tally: Tally::default(),
            company: Company::Alone,
            batch: BATCH,
            role: Role::Alone,
        }
    }

    /// A marker that only records its roots, until [`note_no_more`](Self::note_no_more).
    pub(crate) fn concurrent(marks: Arc<Marks>, base: usize, stack_max: usize) -> Self {
        let mut marker = Self::new(marks, base, stack_max);
        (marker.frontier, marker.noted) = (0, Some(Vec::new()));
        marker
    }

    /// The roots recorded since the last call, and the bytes outside the heap that were counted.
    pub fn take_noted(&mut self) -> (Vec<Value>, usize) {
        let roots = self.noted.as_mut().map(core::mem::take).unwrap_or_default();
        (roots, core::mem::take(&mut self.tally.held_bytes))
    }

    /// From now on roots are marked.
    pub fn note_no_more(&mut self) {
        self.noted = None;
        self.reach = self.marks.reach_bytes();
        self.frontier = self.reach;
    }

    #[cold]
    fn beyond(&mut self, value: Value) -> bool {
        if let Some(noted) = &mut self.noted {
            noted.push(value);
            return false;
        }
        let offset = value.address() - self.base;
        let is_new = offset < self.reach && self.marks.set(offset, self.company);
        if is_new {
            self.ephemerons.found(value);
        }
        is_new
    }

    /// Marks a root.
    #[inline]
    pub fn mark(&mut self, value: Value) {
        if self.discover(value) {
            self.push(value);
        }
    }

    /// Counts bytes outside the heap that belong to what is being marked.
    pub fn hold(&mut self, bytes: usize) {
        self.tally.held_bytes += bytes;
    }

    /// Bytes of everything scanned in the heap so far, including by helpers.
    pub(crate) fn marked_bytes(&self) -> usize {
        self.tally.marked_bytes + self.helped_bytes()
    }

    /// Whether no marked object is still to be scanned, by this marker or a helper.
    pub(crate) fn is_idle(&self) -> bool {
        self.work.is_empty() && self.company == Company::Alone
    }

    /// Bytes of everything scanned so far, inside the heap and outside.
    pub const fn known_bytes(&self) -> usize {
        self.tally.marked_bytes + self.tally.held_bytes
    }

    /// Marks a root given as a word (`Value::to_word`).
    #[inline]
    pub fn mark_word(&mut self, word: u64) {
        self.mark(Value::from_word(word));
    }

    /// Sets the mark. Returns `true` if `value` is a heap object that was not marked before.
    #[inline(always)]
    fn discover(&mut self, value: Value) -> bool {
        if !value.is_pair() && !value.is_object() {
            return false;
        }
        debug_assert!(value.address() >= self.base, "a root outside the heap: {value:?}");
        let offset = value.address() - self.base;
        if offset >= self.frontier {
            return self.beyond(value);
        }
        self.marks.set(offset, self.company)
    }

    #[inline(always)]
    fn push(&mut self, value: Value) {
        if self.work.stack.len() < self.stack_max {
            self.work.stack.push(value);
        } else {
            self.overflow(value);
        }
    }

    #[cold]
    fn overflow(&mut self, value: Value) {
        if is_scanned_once(value) {
            return self.work.stack.push(value);
        }
        let block = (value.address() - self.base) / BLOCK_BYTES;
        self.tally.overflows += 1;
        self.tally.marked_bytes += bytes_of(value);
        if self.work.overflowed.last() != Some(&block) {
            self.work.overflowed.push(block);
        }
        if self.work.overflowed.len() > self.stack_max {
            self.work.overflowed.sort_unstable();
            self.work.overflowed.dedup();
        }
    }

    /// Marks everything reachable from what was marked.
    pub fn run(&mut self) {
        while !self.run_for(usize::MAX) {}
    }

    /// Continues marking for at most `scans` scans, or until other markers have to be waited for.
    /// Returns whether everything is marked.
    pub(crate) fn run_for(&mut self, mut scans: usize) -> bool {
        while scans > 0 {
            let asked = scans.min(self.batch);
            let done = self.scan_some(asked);
            scans -= done.max(1);
            if done == asked {
                self.share();
            } else if self.rescan_overflowed() {
                continue;
            } else if !self.is_quiet() {
                return false;
            } else if self.work.is_empty() && !self.settle_ephemeron() {
                return true;
            }
        }
        false
    }

    /// Scans at most `scans` objects, lists or pieces. Returns their number.
    fn scan_some(&mut self, scans: usize) -> usize {
        for done in 0..scans {
            if let Some(value) = self.work.stack.pop() {
                self.scan(value);
            } else if let Some((value, from)) = self.work.partial.pop() {
                self.scan_piece(value, from);
            } else {
                return done;
            }
        }
        scans
    }

    #[inline]
    fn scan(&mut self, value: Value) {
        if value.is_pair() {
            self.scan_pair(value.address());
        } else {
            self.scan_object(value);
        }
    }

    /// Follows a list for a bounded number of pairs. The car goes first, so that the stack has one
    /// cdr for each level of nesting.
    #[inline]
    fn scan_pair(&mut self, mut address: usize) {
        for _ in 0..LIST_PAIRS {
            self.tally.marked_bytes += 2 * WORD_BYTES;
            let car = Value::from_word(word::load(address));
            let cdr = Value::from_word(word::load(address + WORD_BYTES));
            let next = match (self.discover(car), self.discover(cdr)) {
                (false, false) => return,
                (true, false) => car,
                (false, true) => cdr,
                (true, true) => {
                    self.push(cdr);
                    car
                }
            };
            if !next.is_pair() {
                self.scan_object(next);
                return;
            }
            address = next.address();
        }
        self.push(Value::pair_at(address));
    }

    fn scan_object(&mut self, value: Value) {
        let header = Header::at(value.address());
        let bytes = object_bytes(header.words());
        self.tally.marked_bytes += bytes;
        let offset = value.address() - self.base;
        if bytes > LINE_BYTES - offset % LINE_BYTES && bytes <= BLOCK_BYTES {
            self.marks.cover(offset, bytes, self.company);
        }
        self.scan_payload(value, header);
    }

    #[inline]
    fn scan_payload(&mut self, value: Value, header: Header) {
        if header.is(Kind::Foreign) {
            if let Some(object) = word::foreign_at(value.payload_word(0)) {
                self.tally.held_bytes += object.held_bytes();
                object.trace(self);
            }
            return;
        }
        if header.is(Kind::Ephemeron) {
            self.ephemerons.scanned(value);
            return;
        }
        let fields = header.traced(value.address());
        if fields.len() > PIECE_WORDS {
            self.work.partial.push((value, fields.start));
            return;
        }
        for i in fields {
            self.mark(value.field_at(i));
        }
    }

    fn scan_piece(&mut self, value: Value, from: usize) {
        let end = Header::at(value.address()).traced(value.address()).end;
        let piece_end = end.min(from + PIECE_WORDS);
        if piece_end < end {
            self.work.partial.push((value, piece_end));
        }
        for i in from..piece_end {
            self.mark(value.field_at(i));
        }
    }

    /// Examines the children of marked objects again in blocks where some were not scanned.
    fn rescan_overflowed(&mut self) -> bool {
        let mut blocks = core::mem::take(&mut self.work.overflowed);
        blocks.sort_unstable();
        blocks.dedup();
        let found = !blocks.is_empty();
        for block in blocks {
            let offsets: Vec<usize> = self.marks.marked_in(block).collect();
            for offset in offsets {
                self.rescan(self.base + offset);
            }
            // Empty the stack between blocks, so that it has room for the next block's children.
            while let Some(value) = self.work.stack.pop() {
                self.scan(value);
            }
        }
        found
    }

    fn rescan(&mut self, address: usize) {
        let first = Header::at(address);
        if first.is_header() {
            let value = Value::object_at(address);
            if is_scanned_once(value) {
                return;
            }
            let offset = address - self.base;
            let bytes = object_bytes(first.words());
            if bytes <= BLOCK_BYTES {
                self.marks.cover(offset, bytes, self.company);
            }
            self.scan_payload(value, first);
        } else {
            self.mark(Value::from_word(first.to_word()));
            self.mark(Value::from_word(word::load(address + WORD_BYTES)));
        }
    }

    /// Examines a pending ephemeron, when all else is marked. Returns whether there was one.
    fn settle_ephemeron(&mut self) -> bool {
        let Some(ephemeron) = self.ephemerons.next() else { return false };
        if self.is_live(ephemerons::key_of(ephemeron)) {
            self.mark(ephemerons::datum_of(ephemeron));
        } else {
            self.ephemerons.wait(ephemeron);
            self.frontier = 0;
        }
        true
    }

    /// Records that a guardian is being scanned.
    pub(crate) fn guardian(&mut self, guardian: Value) {
        self.ephemerons.guardian(guardian);
    }

    /// The guardians scanned since the last call. Everything else is marked.
    pub(super) fn take_guardians(&mut self) -> Vec<Value> {
        self.ephemerons.take_guardians()
    }

    /// Breaks the ephemerons whose keys are not marked. Everything is marked, and the world is
    /// stopped.
    pub(crate) fn break_ephemerons(&mut self) {
        self.ephemerons.break_waiting();
    }

    pub(super) fn is_live(&self, value: Value) -> bool {
        let is_in_heap = value.is_pair() || value.is_object();
        !is_in_heap || value.address() - self.base >= self.reach || self.is_marked(value)
    }

    pub(crate) fn is_marked(&self, value: Value) -> bool {
        self.marks.get(value.address() - self.base)
    }
}
