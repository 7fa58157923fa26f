//! The allocation interface of a running Lisp thread and of its primitives.
//!
//! Allocation never collects. It takes from the thread's cache, then from the shared heap, then
//! fails. Values in Rust variables need no rooting between two safepoints.
//!
//! **Invariant:** allocation needs a `&Mutator`; operations during which collections may run need a
//! `&mut Mutator`. So a value that borrows the mutator, an [`Unrooted`], stays valid during
//! allocation. The compiler rejects code that holds one across a pause, or while the thread is
//! outside.

use crate::heap::ThreadContext;
use crate::heap::cells::Cells;
use crate::heap::foreign::ForeignObject;
use crate::heap::object::{FLAG_NEGATIVE, FLAG_WIDE, GRANULE_BYTES, Header, Kind, object_bytes};
use crate::heap::word::{self, WORD_BYTES};
use crate::heap::{Heap, OutOfMemory, Unrooted, cache_size};
use crate::value::Value;
use core::cell::Cell;
use core::ops::Range;
use kyocho_syntax::symbol;
use num_bigint::{BigInt, Sign};
use std::sync::Arc;

/// Objects longer than this get blocks of their own.
const LARGE_BYTES: usize = 16 * 1024;
/// Objects up to a line long are allocated in the cache, even if the rest of a run is lost for
/// that.
const SHORT_BYTES: usize = crate::heap::marks::LINE_BYTES;
/// Larger objects cannot be allocated: no address space is that large, and sizes in bytes cannot
/// overflow.
const SIZE_WORDS_MAX: usize = 1 << 44;
/// Cells that a mutator requests at a time by default.
const WANT_DEFAULT: usize = 1024;

/// A thread's access to the heap.
#[derive(Debug)]
pub struct Mutator {
    /// The heap.
    pub heap: Arc<Heap>,
    /// The thread's cell cache.
    pub cells: Cells,
    /// The dynamic environment of the thread; a root.
    pub context: ThreadContext,
    /// Cells that a refill inside a primitive requests: at the next refill (`want`), at the first
    /// refill of a step (`want_first`), and at most (`want_most`).
    want: Cell<usize>,
    want_first: usize,
    want_most: usize,
    /// Memory taken without the cache, in cells.
    wide_cells: Cell<u64>,
    /// Whether it may use the memory kept for handlers when memory is short
    /// ([`Limits::reserve_bytes`](super::Limits::reserve_bytes)).
    pub spends_reserve: bool,
}

impl Mutator {
    /// A mutator with an empty cache, which may use the whole heap.
    #[must_use]
    pub fn new(heap: Arc<Heap>, context: ThreadContext) -> Self {
        let cells = heap.cells(context.account());
        let [want, want_first, want_most] = [WANT_DEFAULT; 3];
        let (want, wide_cells, spends_reserve) = (Cell::new(want), Cell::new(0), true);
        Self { heap, cells, context, want, want_first, want_most, wide_cells, spends_reserve }
    }

    /// A value as one that may not be held while collections may run.
    #[must_use]
    pub const fn unrooted(&self, value: Value) -> Unrooted<'_> {
        Unrooted::new(value, self)
    }

    /// All memory ever taken, with and without the cache, in cells.
    pub fn taken_cells(&self) -> u64 {
        self.cells.taken() + self.wide_cells.get()
    }

    /// Sets how many cells refills inside primitives request: `cells` for the first refill of a
    /// step, and twice as many for each further one, up to the default.
    pub fn set_want(&mut self, cells: usize) {
        self.want_first = cells.clamp(1, cache_size::CELLS_MAX);
        self.want.set(self.want_first);
    }

    /// As [`set_want`](Self::set_want), but the number is the same for each refill.
    pub fn fix_want(&mut self, cells: usize) {
        self.set_want(cells);
        self.want_most = self.want_first;
    }

    /// Begins a step. The thread may wait again soon, and leave unused what it has taken.
    pub fn begin_step(&mut self) {
        self.want.set(self.want_first);
    }

    /// A pair.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    #[inline]
    pub fn cons(&self, car: Value, cdr: Value) -> Result<Value, OutOfMemory> {
        match self.cells.try_cons(car, cdr) {
            Some(pair) => Ok(pair),
            None => self.cons_after_refill(car, cdr),
        }
    }

    #[cold]
    fn cons_after_refill(&self, car: Value, cdr: Value) -> Result<Value, OutOfMemory> {
        self.refill(1, 1)?;
        self.cells.try_cons(car, cdr).ok_or(OutOfMemory)
    }

    /// An object with a payload of zeros (which read as fixnums).
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    #[inline]
    pub fn object(&self, kind: Kind, flags: u8, words: usize) -> Result<Value, OutOfMemory> {
        if words > SIZE_WORDS_MAX {
            return Err(OutOfMemory);
        }
        let at = self.headed(kind, flags, words)?;
        for i in 1..=words {
            word::initialise(at + WORD_BYTES * i, 0);
        }
        Ok(Value::object_at(at))
    }

    /// Memory for an object with `words` payload words. The header is written, the payload is not:
    /// the caller must write it before anything else.
    #[inline]
    fn headed(&self, kind: Kind, flags: u8, words: usize) -> Result<usize, OutOfMemory> {
        let bytes = object_bytes(words);
        // A cache may contain a run of several blocks. Large objects get blocks of their own
        // nevertheless, because the marker relies on that.
        let cached = if bytes <= LARGE_BYTES { self.cells.try_raw(bytes) } else { None };
        let at = match cached {
            Some(at) => at,
            None => self.raw_slowly(bytes)?,
        };
        word::initialise(at, Header::new(kind, flags, words).to_word());
        Ok(at)
    }

    fn refill(&self, need: usize, least: usize) -> Result<(), OutOfMemory> {
        let want = self.want.get().max(least);
        if self.want.get() < self.want_most {
            self.want.set((2 * self.want.get()).min(self.want_most));
        }
        self.heap.refill_keeping(self.cells.words(), need, want, self.spends_reserve)
    }

    #[cold]
    fn raw_slowly(&self, bytes: usize) -> Result<usize, OutOfMemory> {
        if bytes <= SHORT_BYTES {
            self.refill(bytes / GRANULE_BYTES, SHORT_BYTES / GRANULE_BYTES)?;
            return self.cells.try_raw(bytes).ok_or(OutOfMemory);
        }
        self.charge(bytes)?;
        let is_large = bytes > LARGE_BYTES;
        let at = if is_large {
            self.heap.take_large(bytes, self.spends_reserve)
        } else {
            self.heap.take_wide(bytes, self.spends_reserve)
        }?;
        self.wide_cells.set(self.wide_cells.get() + (bytes / GRANULE_BYTES) as u64);
        Ok(at)
    }

    /// Makes sure that the cache has `cells` adjacent cells.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn stock(&self, cells: usize) -> Result<(), OutOfMemory> {
        if self.cells.words().fits(cells * GRANULE_BYTES) {
            return Ok(());
        }
        self.heap.refill(&self.cells, cells, self.want.get().max(cells))
    }

    /// Bytes that the thread's account could take if a collection freed everything taken since the
    /// last one; without an account, the maximum.
    pub fn attainable_bytes(&self) -> usize {
        self.cells.words().account().map_or(usize::MAX, |account| account.attainable_bytes())
    }

    /// Charges the thread's account for `bytes` taken without the cache: a large object, or memory
    /// outside the heap that marking will count.
    ///
    /// # Errors
    /// The account's limit is reached.
    pub fn charge(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let spends = self.spends_reserve;
        self.cells.words().account().map_or(Ok(()), |account| account.charge(bytes, spends))
    }

    /// Charges the thread's account for the symbols made on this kernel thread since the last call.
    ///
    /// # Errors
    /// The account may not make more.
    pub fn admit_symbols(&self) -> Result<(), OutOfMemory> {
        let made_bytes = symbol::take_made_bytes();
        let Some(account) = self.cells.words().account() else { return Ok(()) };
        let is_full = account.take_symbols(made_bytes, self.heap.limits().bytes_max);
        if is_full { Err(OutOfMemory) } else { Ok(()) }
    }

    /// An object whose payload is `fields`.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn object_of(&self, kind: Kind, fields: &[Value]) -> Result<Value, OutOfMemory> {
        let at = self.headed(kind, 0, fields.len())?;
        for (i, &field) in fields.iter().enumerate() {
            word::initialise(at + WORD_BYTES * (i + 1), field.to_word());
        }
        Ok(Value::object_at(at))
    }

    /// A proper list.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn list(&self, items: &[Value]) -> Result<Value, OutOfMemory> {
        self.list_onto(items, Value::NIL)
    }

    /// The items, followed by `tail`.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn list_onto(&self, items: &[Value], tail: Value) -> Result<Value, OutOfMemory> {
        items.iter().rev().try_fold(tail, |list, &item| self.cons(item, list))
    }

    /// A vector of `length` elements, all of them `fill`.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn vector(&self, length: usize, fill: Value) -> Result<Value, OutOfMemory> {
        if length > SIZE_WORDS_MAX {
            return Err(OutOfMemory);
        }
        let at = self.headed(Kind::Vector, 0, length)?;
        for i in 1..=length {
            word::initialise(at + WORD_BYTES * i, fill.to_word());
        }
        Ok(Value::object_at(at))
    }

    /// Memory for an object of `words`, as a buffer of raw words that is not written yet.
    /// Collections do not read it. The caller writes all of it, and may then
    /// [complete](Self::complete) it as another kind.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn begin(&self, flags: u8, words: usize) -> Result<Value, OutOfMemory> {
        if words > SIZE_WORDS_MAX {
            return Err(OutOfMemory);
        }
        Ok(Value::object_at(self.headed(Kind::Buffer, flags, words)?))
    }

    /// Writes some words of an object that is not complete.
    pub fn begin_words(object: Value, range: Range<usize>, fill: Value) {
        for i in range {
            word::initialise(object.address() + WORD_BYTES * (i + 1), fill.to_word());
        }
    }

    /// Sets the kind after all words have been written.
    pub fn complete(object: Value, kind: Kind) {
        let header = Header::new(kind, 0, object.size_words());
        word::publish(object.address(), header.to_word());
    }

    /// A vector of these elements.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn vector_of(&self, elements: &[Value]) -> Result<Value, OutOfMemory> {
        self.object_of(Kind::Vector, elements)
    }

    /// An inexact number.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    #[inline]
    pub fn flonum(&self, number: f64) -> Result<Value, OutOfMemory> {
        let at = self.headed(Kind::Flonum, 0, 1)?;
        word::initialise(at + WORD_BYTES, number.to_bits());
        Ok(Value::object_at(at))
    }

    /// An exact integer: a fixnum if it fits one, otherwise a bignum.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn integer(&self, number: &BigInt) -> Result<Value, OutOfMemory> {
        if let Some(fixnum) = i64::try_from(number).ok().and_then(Value::fixnum_checked) {
            return Ok(fixnum);
        }
        let flags = if number.sign() == Sign::Minus { FLAG_NEGATIVE } else { 0 };
        let limbs = number.iter_u64_digits();
        let bignum = self.object(Kind::Bignum, flags, limbs.len())?;
        for (i, limb) in limbs.enumerate() {
            word::initialise(bignum.address() + WORD_BYTES * (i + 1), limb);
        }
        Ok(bignum)
    }

    /// A bytevector with these bytes.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn bytevector(&self, bytes: &[u8]) -> Result<Value, OutOfMemory> {
        let words = 1 + bytes.len().div_ceil(WORD_BYTES);
        let bytevector = self.object(Kind::Bytevector, 0, words)?;
        word::initialise(bytevector.address() + WORD_BYTES, length_word(bytes.len()));
        initialise_bytes(bytevector.address() + 2 * WORD_BYTES, bytes);
        Ok(bytevector)
    }

    /// A string.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn string(&self, text: &str) -> Result<Value, OutOfMemory> {
        if text.is_ascii() {
            let at = self.headed(Kind::Buffer, 0, text.len().div_ceil(WORD_BYTES))?;
            initialise_bytes(at + WORD_BYTES, text.as_bytes());
            return self.string_over(text.len(), Value::object_at(at));
        }
        let wide = text.chars().any(|c| c > '\u{ff}');
        let length = text.chars().count();
        let buffer = self.buffer(length, if wide { FLAG_WIDE } else { 0 })?;
        for (i, c) in text.chars().enumerate() {
            buffer.set_buffer_char(i, c);
        }
        self.string_over(length, buffer)
    }

    /// A character buffer for `length` characters, all of them NUL.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn buffer(&self, length: usize, flags: u8) -> Result<Value, OutOfMemory> {
        let char_bytes = if flags & FLAG_WIDE != 0 { 4 } else { 1 };
        let words = length.checked_mul(char_bytes).ok_or(OutOfMemory)?.div_ceil(WORD_BYTES);
        self.object(Kind::Buffer, flags, words)
    }

    /// A string whose characters are the first `length` of `buffer`.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn string_over(&self, length: usize, buffer: Value) -> Result<Value, OutOfMemory> {
        let string = self.object(Kind::String, 0, 2)?;
        word::initialise(string.address() + WORD_BYTES, length_word(length));
        word::initialise(string.address() + 2 * WORD_BYTES, buffer.to_word());
        Ok(string)
    }

    /// A record.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn record(&self, record_type: Value, fields: &[Value]) -> Result<Value, OutOfMemory> {
        let record = self.object(Kind::Record, 0, fields.len() + 1)?;
        word::initialise(record.address() + WORD_BYTES, record_type.to_word());
        for (i, &field) in fields.iter().enumerate() {
            word::initialise(record.address() + WORD_BYTES * (i + 2), field.to_word());
        }
        Ok(record)
    }

    /// A cell for a captured variable that is assigned.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    #[inline]
    pub fn cell(&self, value: Value) -> Result<Value, OutOfMemory> {
        let cell = self.object(Kind::Cell, 0, 1)?;
        word::initialise(cell.address() + WORD_BYTES, value.to_word());
        Ok(cell)
    }

    /// A Rust object as a value. It is dropped by the collection that finds it unreachable, or with
    /// the heap.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached. The object is dropped.
    pub fn foreign(&self, object: Box<dyn ForeignObject>) -> Result<Value, OutOfMemory> {
        self.charge(object.held_bytes())?;
        let value = self.reserve_foreign()?;
        self.complete_foreign(value, object);
        Ok(value)
    }

    /// An empty foreign object, for a Rust object that refers to it, directly or through others.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn reserve_foreign(&self) -> Result<Value, OutOfMemory> {
        let value = self.object(Kind::Foreign, 0, 1)?;
        word::initialise(value.address() + WORD_BYTES, 0);
        Ok(value)
    }

    /// An empty foreign object, charged already, for something that is about to be created in the
    /// host. A call that runs out of memory is repeated, and would create it twice. The context
    /// keeps the object alive until it is complete.
    ///
    /// # Errors
    /// The limit of the heap or of the account is reached.
    pub fn reserve_outside<T: ForeignObject>(&mut self) -> Result<Value, OutOfMemory> {
        self.charge(size_of::<T>())?;
        let place = self.reserve_foreign()?;
        self.context.held = place;
        Ok(place)
    }

    /// Stores what was created in the host in its foreign object.
    pub fn complete_outside(&mut self, place: Value, object: impl ForeignObject) -> Value {
        self.complete_foreign(place, Box::new(object));
        self.context.held = Value::FALSE;
        place
    }

    /// Stores a Rust object, charged already, in the foreign object reserved for it.
    pub fn complete_foreign(&self, place: Value, object: Box<dyn ForeignObject>) {
        debug_assert!(place.payload_word(0) == 0, "a place holds one object");
        word::publish(place.address() + WORD_BYTES, word::foreign_into_word(object));
        self.heap.register_foreign(place);
    }
}

fn length_word(length: usize) -> u64 {
    Value::fixnum(length as i64).to_word()
}

/// Writes bytes from `address` on, eight at a time. The last word is padded with zeros.
pub(crate) fn initialise_bytes(address: usize, bytes: &[u8]) {
    for (i, chunk) in bytes.chunks(WORD_BYTES).enumerate() {
        let mut padded = [0; WORD_BYTES];
        padded[..chunk.len()].copy_from_slice(chunk);
        word::initialise(address + WORD_BYTES * i, u64::from_ne_bytes(padded));
    }
}
