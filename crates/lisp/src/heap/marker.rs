//! Marking: an explicit, bounded stack.
//!
//! An object is marked when it is found and scanned when it is popped. When the stack is full the
//! object stays marked but unscanned and its block is noted; when the stack has run dry, noted
//! blocks are walked and the children of every marked object in them looked at again. Each
//! overflow marked one more object, so this ends. Long vectors are scanned piece by piece, and
//! lists along their cdr, so that neither fills the stack.

use crate::heap::ephemerons::{self, Ephemerons};
use crate::heap::marks::{BLOCK_BYTES, LINE_BYTES, Marks};
use crate::heap::object::{Header, Kind, object_bytes};
use crate::heap::word::{self, WORD_BYTES};
use crate::value::Value;
use core::fmt;

/// Payload words of one object scanned at a time.
const PIECE_WORDS: usize = 256;

/// Marks what is reachable from the roots it is given.
pub struct Marker<'a> {
    marks: &'a mut Marks,
    base: usize,
    /// What lies from here on, from the base, needs no mark: it is younger than the cycle.
    reach: usize,
    /// What lies from here on needs a closer look: as `reach`; all, while roots are noted or keys of ephemerons awaited.
    frontier: usize,
    /// Roots that were noted, not marked; `None` where they are marked as they come.
    noted: Option<Vec<Value>>,
    stack: Vec<Value>,
    /// Objects longer than a piece, and the payload word to go on from.
    partial: Vec<(Value, usize)>,
    stack_max: usize,
    ephemerons: Ephemerons,
    /// Blocks with marked objects that were not scanned.
    overflowed: Vec<usize>,
    pub(crate) overflows: usize,
    pub(crate) marked_bytes: usize,
    /// Bytes outside the heap that marked objects hold.
    held_bytes: usize,
}

impl fmt::Debug for Marker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marker").field("stack", &self.stack.len()).finish_non_exhaustive()
    }
}

impl<'a> Marker<'a> {
    pub(crate) fn new(marks: &'a mut Marks, base: usize, stack_max: usize) -> Self {
        Self {
            marks,
            base,
            reach: usize::MAX,
            frontier: usize::MAX,
            noted: None,
            stack: Vec::with_capacity(stack_max.min(4096)),
            partial: Vec::new(),
            stack_max,
            ephemerons: Ephemerons::default(),
            overflowed: Vec::new(),
            overflows: 0,
            marked_bytes: 0,
            held_bytes: 0,
        }
    }

    /// One that notes the roots it is given, until [`note_no_more`](Self::note_no_more).
    pub(crate) fn beside(marks: &'a mut Marks, base: usize, stack_max: usize) -> Self {
        Self { frontier: 0, noted: Some(Vec::new()), ..Self::new(marks, base, stack_max) }
    }

    /// The roots noted since the last time, and the bytes outside the heap that were counted.
    pub(crate) fn take_noted(&mut self) -> (Vec<Value>, usize) {
        let roots = self.noted.as_mut().map(core::mem::take).unwrap_or_default();
        (roots, core::mem::take(&mut self.held_bytes))
    }

    /// From now on roots are marked.
    pub(crate) fn note_no_more(&mut self) {
        self.noted = None;
        self.reach = self.marks.reach_bytes();
        self.frontier = self.reach;
    }

    /// The marks that were made.
    pub(crate) fn into_marks(self) -> &'a mut Marks {
        self.marks
    }

    #[cold]
    fn beyond(&mut self, value: Value) -> bool {
        if let Some(noted) = &mut self.noted {
            noted.push(value);
            return false;
        }
        let offset = value.address() - self.base;
        let is_new = offset < self.reach && self.marks.set(offset);
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
        self.held_bytes += bytes;
    }

    /// Bytes of all that was scanned so far, inside the heap and outside.
    pub(crate) const fn known_bytes(&self) -> usize {
        self.marked_bytes + self.held_bytes
    }

    /// Marks a root held as a word (`Value::to_word`).
    #[inline]
    pub fn mark_word(&mut self, word: u64) {
        self.mark(Value::from_word(word));
    }

    /// Sets the mark; `true` when `value` is a heap object that was not marked before.
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
        self.marks.set(offset)
    }

    #[inline(always)]
    fn push(&mut self, value: Value) {
        if self.stack.len() < self.stack_max {
            self.stack.push(value);
        } else {
            self.overflow(value);
        }
    }

    #[cold]
    fn overflow(&mut self, value: Value) {
        let block = (value.address() - self.base) / BLOCK_BYTES;
        self.overflows += 1;
        if self.overflowed.last() != Some(&block) {
            self.overflowed.push(block);
        }
        if self.overflowed.len() > self.stack_max {
            self.overflowed.sort_unstable();
            self.overflowed.dedup();
        }
    }

    /// Marks everything reachable from what was marked.
    pub(crate) fn run(&mut self) {
        loop {
            while let Some(value) = self.stack.pop() {
                self.scan(value);
            }
            if let Some((value, from)) = self.partial.pop() {
                self.scan_piece(value, from);
            } else if !self.rescan_overflowed() && !self.settle_ephemeron() {
                return;
            }
        }
    }

    /// Marks on, up to so many scans and one more list; whether all is marked.
    pub(crate) fn run_for(&mut self, scans: usize) -> bool {
        for _ in 0..scans {
            if let Some(value) = self.stack.pop() {
                self.scan(value);
            } else if let Some((value, from)) = self.partial.pop() {
                self.scan_piece(value, from);
            } else if self.rescan_overflowed() {
                return false;
            } else if !self.settle_ephemeron() {
                return true;
            }
        }
        false
    }

    #[inline]
    fn scan(&mut self, value: Value) {
        if value.is_pair() {
            self.scan_pair(value.address());
        } else {
            self.scan_object(value);
        }
    }

    /// Follows a list. The car goes first, so that the stack holds one cdr a level of nesting.
    #[inline]
    fn scan_pair(&mut self, mut address: usize) {
        loop {
            self.marked_bytes += 2 * WORD_BYTES;
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
    }

    fn scan_object(&mut self, value: Value) {
        let header = Header::at(value.address());
        let bytes = object_bytes(header.words());
        self.marked_bytes += bytes;
        let offset = value.address() - self.base;
        if bytes > LINE_BYTES - offset % LINE_BYTES && bytes <= BLOCK_BYTES {
            self.marks.cover(offset, bytes);
        }
        self.scan_payload(value, header);
    }

    #[inline]
    fn scan_payload(&mut self, value: Value, header: Header) {
        if header.is(Kind::Foreign) {
            if let Some(object) = word::foreign_at(value.payload_word(0)) {
                self.held_bytes += object.held_bytes();
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
            self.partial.push((value, fields.start));
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
            self.partial.push((value, piece_end));
        }
        for i in from..piece_end {
            self.mark(value.field_at(i));
        }
    }

    /// Looks again at the children of marked objects where some were not scanned.
    fn rescan_overflowed(&mut self) -> bool {
        let mut blocks = core::mem::take(&mut self.overflowed);
        blocks.sort_unstable();
        blocks.dedup();
        let found = !blocks.is_empty();
        for block in blocks {
            let offsets: Vec<usize> = self.marks.marked_in(block).collect();
            for offset in offsets {
                self.rescan(self.base + offset);
            }
            // Drain between blocks: the stack has room again for the next one's children.
            while let Some(value) = self.stack.pop() {
                self.scan(value);
            }
        }
        found
    }

    fn rescan(&mut self, address: usize) {
        let first = Header::at(address);
        if first.is_header() {
            let value = Value::object_at(address);
            let offset = address - self.base;
            let bytes = object_bytes(first.words());
            if bytes <= BLOCK_BYTES {
                self.marks.cover(offset, bytes);
            }
            self.scan_payload(value, first);
        } else {
            self.mark(Value::from_word(first.to_word()));
            self.mark(Value::from_word(word::load(address + WORD_BYTES)));
        }
    }

    /// Looks at an ephemeron again, now that all else is marked; whether there was one.
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

    /// Breaks the ephemerons whose keys were not found. All is marked, and the world is stopped.
    pub(crate) fn break_ephemerons(&mut self) {
        self.ephemerons.break_waiting();
    }

    fn is_live(&self, value: Value) -> bool {
        let is_in_heap = value.is_pair() || value.is_object();
        !is_in_heap || value.address() - self.base >= self.reach || self.is_marked(value)
    }

    pub(crate) fn is_marked(&self, value: Value) -> bool {
        self.marks.get(value.address() - self.base)
    }
}
