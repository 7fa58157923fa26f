//! Objects with a header, and the accessors of values.
//!
//! ```text
//!            63                     16 15    8 7      0
//! address -> +-----------------------+-------+--------+
//!            | payload size in words | flags |  kind  |   header
//!            +-----------------------+-------+--------+
//!            | payload word 0                         |
//!            | ...                                    |
//!            +----------------------------------------+   padded to 16 bytes
//! ```
//!
//! Invariants: kind and size of an object never change once other threads can access it, so a
//! racing reader may trust the bounds that it reads. The low three bits of a kind are `111`, which
//! is not the tag of any value. So the first word of a granule shows whether it is a header or the
//! car of a pair, and marked memory can be walked.

use crate::heap::barrier;
use crate::heap::word::{self, WORD_BYTES};
use crate::value::Value;
use core::ops::Range;
use kyocho_syntax::symbol::Symbol;

/// The kinds of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `[f64 bits]`.
    Flonum = kind_code(0),
    /// Magnitude as little-endian 64-bit limbs; [`FLAG_NEGATIVE`] is the sign.
    Bignum = kind_code(1),
    /// `[numerator][denominator]`.
    Ratio = kind_code(2),
    /// `[length fixnum][buffer]`.
    String = kind_code(3),
    /// Raw characters: one byte each, or four if [`FLAG_WIDE`] is set.
    Buffer = kind_code(4),
    /// Its elements.
    Vector = kind_code(5),
    /// `[length fixnum][bytes]`.
    Bytevector = kind_code(6),
    /// `[code][free variables]`.
    Closure = kind_code(7),
    /// `[raw word of the machine][constants]`.
    Code = kind_code(8),
    /// `[raw index into the primitives]`.
    Primitive = kind_code(9),
    /// `[value]`: a mutated captured variable.
    Cell = kind_code(10),
    /// `[record type][fields]`.
    Record = kind_code(11),
    /// Values.
    RecordType = kind_code(12),
    /// Values.
    Promise = kind_code(13),
    /// Values.
    Parameter = kind_code(14),
    /// Multiple values.
    Values = kind_code(15),
    /// `[raw word of the machine][values]`.
    Continuation = kind_code(16),
    /// Values.
    HashTable = kind_code(17),
    /// `[address of a Rust object]`, dropped when unreachable.
    Foreign = kind_code(18),
    /// Values.
    Mutex = kind_code(19),
    /// Values.
    Condvar = kind_code(20),
    /// Values.
    Thread = kind_code(21),
    /// Values.
    Channel = kind_code(22),
    /// Values.
    Environment = kind_code(23),
    /// Values.
    Condition = kind_code(24),
    /// `[live fixnum][values]`: only the first `live` values are traced.
    Segment = kind_code(25),
    /// `[key][datum]`, neither of them traced. The datum is reachable while the key is; see
    /// `ephemerons.rs`.
    Ephemeron = kind_code(26),
    /// `[real part][imaginary part]`.
    Complex = kind_code(27),
}

const fn kind_code(n: u8) -> u8 {
    n << 3 | 0b111
}

const KINDS: [Kind; 28] = [
    Kind::Flonum,
    Kind::Bignum,
    Kind::Ratio,
    Kind::String,
    Kind::Buffer,
    Kind::Vector,
    Kind::Bytevector,
    Kind::Closure,
    Kind::Code,
    Kind::Primitive,
    Kind::Cell,
    Kind::Record,
    Kind::RecordType,
    Kind::Promise,
    Kind::Parameter,
    Kind::Values,
    Kind::Continuation,
    Kind::HashTable,
    Kind::Foreign,
    Kind::Mutex,
    Kind::Condvar,
    Kind::Thread,
    Kind::Channel,
    Kind::Environment,
    Kind::Condition,
    Kind::Segment,
    Kind::Ephemeron,
    Kind::Complex,
];

impl Kind {
    /// The kind with this code.
    pub fn of_code(code: u8) -> Option<Self> {
        KINDS.into_iter().find(|&kind| kind as u8 == code)
    }
}

/// The bignum is negative.
pub const FLAG_NEGATIVE: u8 = 1 << 0;
/// The buffer uses four bytes for a character.
pub const FLAG_WIDE: u8 = 1 << 1;
/// A literal, which cannot be changed.
pub const FLAG_IMMUTABLE: u8 = 1 << 2;
/// Its meaning depends on the kind.
pub const FLAG_OWN: u8 = 1 << 3;
/// A second flag of this sort.
pub const FLAG_OWN_TOO: u8 = 1 << 4;
/// The spin bit of compound structures; see [`Value::try_lock`].
pub const FLAG_LOCKED: u8 = 1 << 7;

const FLAGS_SHIFT: u32 = 8;
const SIZE_SHIFT: u32 = 16;

/// Bytes of the smallest unit of the heap: a pair, or a header and one word.
pub const GRANULE_BYTES: usize = 16;

/// The header word.
#[derive(Clone, Copy, Debug)]
pub struct Header(u64);

impl Header {
    #[inline(always)]
    pub(crate) const fn new(kind: Kind, flags: u8, words: usize) -> Self {
        Self((words as u64) << SIZE_SHIFT | (flags as u64) << FLAGS_SHIFT | kind as u64)
    }

    /// The word itself.
    #[inline(always)]
    #[must_use]
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// The header of the object at this address.
    #[inline(always)]
    #[must_use]
    pub fn at(address: usize) -> Self {
        Self(word::load(address))
    }

    /// Whether this first word of a granule is a header, rather than the car of a pair.
    #[inline(always)]
    pub(crate) const fn is_header(self) -> bool {
        self.0 & 0b111 == 0b111
    }

    /// Whether this is the header of an object of this kind.
    #[inline(always)]
    #[must_use]
    pub const fn is(self, kind: Kind) -> bool {
        self.0 as u8 == kind as u8
    }

    /// The object's kind.
    ///
    /// # Panics
    /// If this is not a header. The heap is then corrupt, and continuing would spread the damage.
    #[inline]
    #[must_use]
    pub fn kind(self) -> Kind {
        debug_assert!(self.is_header(), "no header: {:#x}", self.0);
        KINDS[usize::from(self.0 as u8 >> 3)]
    }

    /// The object's flags.
    #[inline(always)]
    #[must_use]
    pub const fn flags(self) -> u8 {
        (self.0 >> FLAGS_SHIFT) as u8
    }

    #[inline(always)]
    pub(crate) const fn words(self) -> usize {
        (self.0 >> SIZE_SHIFT) as usize
    }

    /// Whether this is the header of a mutable vector: one comparison for both properties.
    #[inline(always)]
    const fn is_mutable_vector(self) -> bool {
        const MASK: u64 = 0xff | (FLAG_IMMUTABLE as u64) << FLAGS_SHIFT;
        self.0 & MASK == Kind::Vector as u64
    }

    /// Which payload words of the object at `address` are values.
    #[inline]
    pub(crate) fn traced(self, address: usize) -> Range<usize> {
        let words = self.words();
        match self.kind() {
            Kind::Flonum
            | Kind::Bignum
            | Kind::Buffer
            | Kind::Bytevector
            | Kind::Primitive
            | Kind::Foreign
            | Kind::Ephemeron => 0..0,
            Kind::Code | Kind::Continuation => 1..words,
            Kind::Segment => {
                let live = Value::from_word(word::load(address + WORD_BYTES));
                1..words.min(live.as_fixnum().unwrap_or(0) as usize + 1)
            }
            _ => 0..words,
        }
    }
}

/// Bytes that an object with `words` payload words takes.
#[inline(always)]
pub(crate) const fn object_bytes(words: usize) -> usize {
    (WORD_BYTES * (words + 1) + GRANULE_BYTES - 1) & !(GRANULE_BYTES - 1)
}

/// Pairs.
impl Value {
    /// The car of a pair.
    #[inline(always)]
    #[must_use]
    pub fn car(self) -> Option<Self> {
        if self.is_pair() { Some(Self::from_word(word::load(self.address()))) } else { None }
    }

    /// The cdr of a pair.
    #[inline(always)]
    #[must_use]
    pub fn cdr(self) -> Option<Self> {
        if self.is_pair() {
            Some(Self::from_word(word::load(self.address() + WORD_BYTES)))
        } else {
            None
        }
    }

    /// Writes the car; `false` if this is not a pair, or is immutable.
    #[inline(always)]
    #[must_use]
    pub fn set_car(self, new: Self) -> bool {
        if self.is_mutable_pair() {
            overwrite(self.address());
            word::publish(self.address(), new.to_word());
        }
        self.is_mutable_pair()
    }

    /// Writes the cdr; `false` if this is not a pair, or is immutable.
    #[inline(always)]
    #[must_use]
    pub fn set_cdr(self, new: Self) -> bool {
        if self.is_mutable_pair() {
            overwrite(self.address() + WORD_BYTES);
            word::publish(self.address() + WORD_BYTES, new.to_word());
        }
        self.is_mutable_pair()
    }

    /// Writes both words of a pair under construction, even of an immutable one.
    pub fn fill_pair(self, car: Self, cdr: Self) {
        debug_assert!(self.is_pair(), "no pair: {self:?}");
        let pair = Self::pair_at(self.address());
        let _ = pair.set_car(car) && pair.set_cdr(cdr);
    }

    /// Car and cdr.
    #[inline(always)]
    #[must_use]
    pub fn uncons(self) -> Option<(Self, Self)> {
        Some((self.car()?, self.cdr()?))
    }

    /// Whether this is the empty list.
    #[inline(always)]
    #[must_use]
    pub fn is_nil(self) -> bool {
        self == Self::NIL
    }
}

/// Applies the write barrier to the value at `address`, which is about to be overwritten.
#[inline(always)]
fn overwrite(address: usize) {
    barrier::overwrite(|| Value::from_word(word::load(address)));
}

/// Objects in general.
impl Value {
    /// The header of an object.
    #[inline(always)]
    #[must_use]
    pub fn header(self) -> Option<Header> {
        if self.is_object() { Some(Header::at(self.address())) } else { None }
    }

    /// The kind of an object.
    #[inline]
    #[must_use]
    pub fn kind(self) -> Option<Kind> {
        Some(self.header()?.kind())
    }

    /// Whether this is an object of that kind.
    #[inline(always)]
    #[must_use]
    pub fn is_kind(self, kind: Kind) -> bool {
        self.is_object() && Header::at(self.address()).is(kind)
    }

    /// The payload size of an object, in words; 0 for other values.
    #[inline(always)]
    #[must_use]
    pub fn size_words(self) -> usize {
        self.header().map_or(0, Header::words)
    }

    /// The flags of an object; 0 for other values.
    #[inline]
    #[must_use]
    pub fn flags(self) -> u8 {
        self.header().map_or(0, Header::flags)
    }

    /// Sets flags of an object.
    #[inline]
    pub fn set_flags(self, flags: u8) {
        if self.is_object() {
            word::set_bits(self.address(), u64::from(flags) << FLAGS_SHIFT);
        }
    }

    /// Clears flags of an object.
    #[inline]
    pub fn clear_flags(self, flags: u8) {
        if self.is_object() {
            word::clear_bits(self.address(), u64::from(flags) << FLAGS_SHIFT);
        }
    }

    /// Takes the object's spin bit; `false` if another thread holds it. Never hold it across a
    /// safepoint: a collector could wait for ever for the thread that spins.
    #[inline]
    #[must_use]
    pub fn try_lock(self) -> bool {
        let bit = u64::from(FLAG_LOCKED) << FLAGS_SHIFT;
        self.is_object() && word::set_bits(self.address(), bit) & bit == 0
    }

    /// Releases the spin bit.
    #[inline]
    pub fn unlock(self) {
        self.clear_flags(FLAG_LOCKED);
    }

    /// Payload word `i` as a value. By the object's kind the word must be a value.
    #[inline(always)]
    #[must_use]
    pub fn field(self, i: usize) -> Option<Self> {
        if i < self.size_words() { Some(self.field_at(i)) } else { None }
    }

    /// Writes payload word `i`; `false` if it does not exist.
    #[inline(always)]
    #[must_use]
    pub fn set_field(self, i: usize, new: Self) -> bool {
        let inside = i < self.size_words();
        if inside {
            self.set_field_at(i, new);
        }
        inside
    }

    /// Payload word `i` of an object known to have one: the machine has checked it before, for
    /// example for a closure's free variables. A wrong `i` reads adjacent memory.
    #[inline(always)]
    pub fn field_at(self, i: usize) -> Self {
        debug_assert!(i < self.size_words(), "field {i} of {self:?}");
        Self::from_word(word::load(self.address() + WORD_BYTES * (i + 1)))
    }

    /// Writes payload word `i` of an object known to have one.
    #[inline(always)]
    pub fn set_field_at(self, i: usize, new: Self) {
        debug_assert!(i < self.size_words(), "field {i} of {self:?}");
        let at = self.address() + WORD_BYTES * (i + 1);
        overwrite(at);
        word::publish(at, new.to_word());
    }

    /// Payload word `i` as a raw word.
    ///
    /// # Panics
    /// If the object has no such word.
    #[inline]
    #[must_use]
    pub fn payload_word(self, i: usize) -> u64 {
        assert!(i < self.size_words(), "payload word {i} of {self:?}");
        word::load(self.address() + WORD_BYTES * (i + 1))
    }

    /// Writes payload word `i` as a raw word.
    ///
    /// # Panics
    /// If the object has no such word.
    #[inline]
    pub fn set_payload_word(self, i: usize, new: u64) {
        assert!(i < self.size_words(), "payload word {i} of {self:?}");
        word::publish(self.address() + WORD_BYTES * (i + 1), new);
    }

    /// Replaces payload word `i` if it is `old`.
    ///
    /// # Errors
    /// The value found instead of `old`.
    ///
    /// # Panics
    /// If the object has no such word.
    pub fn compare_and_set_field(self, i: usize, old: Self, new: Self) -> Result<(), Self> {
        assert!(i < self.size_words(), "payload word {i} of {self:?}");
        barrier::overwrite(|| old);
        word::exchange(self.address() + WORD_BYTES * (i + 1), old.to_word(), new.to_word())
            .map(|_| ())
            .map_err(Self::from_word)
    }
}

/// Accessors of single kinds.
impl Value {
    /// The number of a flonum.
    #[inline(always)]
    #[must_use]
    pub fn as_flonum(self) -> Option<f64> {
        if self.is_kind(Kind::Flonum) {
            Some(f64::from_bits(word::load(self.address() + WORD_BYTES)))
        } else {
            None
        }
    }

    /// The symbol, if this is one.
    #[inline]
    #[must_use]
    pub fn as_symbol(self) -> Option<Symbol> {
        word::symbol_at(self)
    }

    /// The length of a vector.
    #[inline(always)]
    #[must_use]
    pub fn vector_length(self) -> Option<usize> {
        let header = self.header()?;
        if header.is(Kind::Vector) { Some(header.words()) } else { None }
    }

    /// Element `i` of a vector.
    #[inline(always)]
    #[must_use]
    pub fn vector_ref(self, i: usize) -> Option<Self> {
        if i < self.vector_length()? { Some(self.field_at(i)) } else { None }
    }

    /// Writes element `i` of a vector; `false` if it does not exist, or the vector is immutable.
    #[inline(always)]
    #[must_use]
    pub fn vector_set(self, i: usize, new: Self) -> bool {
        let writable = |header: Header| header.is_mutable_vector() && i < header.words();
        let writes = self.header().is_some_and(writable);
        if writes {
            self.set_field_at(i, new);
        }
        writes
    }
}
