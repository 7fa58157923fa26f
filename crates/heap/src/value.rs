//! The tagged word: every Lisp value is 64 bits.
//!
//! ```text
//!  63                              3 2 0
//! +---------------------------------+---+
//! |       61-bit signed integer     |000|  fixnum
//! |       address of a cell         |001|  pair: two words, no header
//! |       address of a cell         |101|  pair of a literal, which cannot be changed
//! |       address of an object      |010|  object: header word first (see `heap::object`)
//! |       address of SymbolData     |011|  symbol
//! |       payload        | kind     |110|  immediate: (), #t, #f, characters, ...
//! +---------------------------------+---+
//! ```
//!
//! **Invariant:** a `Value` with a pointer tag refers to a live, fully initialised cell, object or
//! symbol. **Invariant:** a pair is marked as a literal's before any other code knows it, and stays
//! one. So all words that refer to a pair are equal.

use kyocho_syntax::number::FIXNUM_BITS;
use kyocho_syntax::symbol::Symbol;

/// A Lisp value. `==` is `eq?`.
///
/// A value is one word, so it is `Copy`. A copy in a variable of Rust is **not** a root of the
/// collector. It is valid as long as no collection can run:
///
/// - Allocation never collects. So a primitive may use all its values until it
///   [pauses](crate::heap::pause), goes [outside](crate::heap::Mutator::outside) or returns.
/// - The arguments of a primitive are in its frame, which is a root, as long as it runs.
/// - A value that is needed after a pause is passed to it
///   ([`pause_keeping`](crate::heap::Mutator::pause_keeping)).
/// - A value that outlives a step is in an object, or in a field that a
///   [`trace`](crate::heap::ForeignObject::trace) method marks.
///
/// The type [`Unrooted`](crate::heap::Unrooted) lets the compiler check the first rule: it is bound
/// to a borrow of the mutator, which a pause needs exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Value(u64);

const TAG_BITS: u32 = u64::BITS - FIXNUM_BITS;
const TAG_MASK: u64 = 0b111;
const TAG_FIXNUM: u64 = 0b000;
const TAG_PAIR: u64 = 0b001;
/// Set together with [`TAG_PAIR`] if the pair belongs to a literal. No other tag ends in `01`.
const TAG_LITERAL: u64 = 0b100;
const PAIR_MASK: u64 = TAG_MASK & !TAG_LITERAL;
const TAG_OBJECT: u64 = 0b010;
const TAG_SYMBOL: u64 = 0b011;
const TAG_IMMEDIATE: u64 = 0b110;
const KIND_CHARACTER: u64 = 0x0f;

const fn immediate(kind: u64) -> Value {
    Value(kind << 8 | TAG_IMMEDIATE)
}

impl Value {
    /// The empty list.
    pub const NIL: Self = immediate(1);
    /// `#f`.
    pub const FALSE: Self = immediate(2);
    /// `#t`.
    pub const TRUE: Self = immediate(3);
    /// The value of `(if #f #f)`.
    pub const UNSPECIFIED: Self = immediate(4);
    /// The end-of-file object.
    pub const EOF: Self = immediate(5);
    /// The content of a top-level location without a value. Never visible to Lisp.
    pub const UNBOUND: Self = immediate(6);
    /// A `letrec` variable before its initialisation. Never visible to Lisp.
    pub const UNINITIALISED: Self = immediate(7);
    /// An optional argument that was not passed. Never visible to Lisp.
    pub const ABSENT: Self = immediate(8);

    /// The largest fixnum, 2^60 - 1.
    pub const FIXNUM_MAX: i64 = (1 << (FIXNUM_BITS - 1)) - 1;
    /// The smallest fixnum, -2^60.
    pub const FIXNUM_MIN: i64 = -(1 << (FIXNUM_BITS - 1));

    /// The word itself, for storing.
    #[inline]
    #[must_use]
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// The value of a word that `to_word` returned. Any other word breaks the module's invariant.
    /// Only the heap, the machine and the table of locations call this, on words that they stored.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// A fixnum.
    #[inline]
    #[must_use]
    pub const fn fixnum(n: i64) -> Self {
        debug_assert!(n >= Self::FIXNUM_MIN && n <= Self::FIXNUM_MAX, "fixnum out of range");
        Self((n as u64) << TAG_BITS)
    }

    /// A fixnum, if `n` fits one.
    #[inline]
    #[must_use]
    pub const fn fixnum_checked(n: i64) -> Option<Self> {
        if n >= Self::FIXNUM_MIN && n <= Self::FIXNUM_MAX {
            Some(Self((n as u64) << TAG_BITS))
        } else {
            None
        }
    }

    /// Whether this is a fixnum.
    #[inline]
    #[must_use]
    pub const fn is_fixnum(self) -> bool {
        self.0 & TAG_MASK == TAG_FIXNUM
    }

    /// The integer of a fixnum.
    #[inline]
    #[must_use]
    pub const fn as_fixnum(self) -> Option<i64> {
        if self.is_fixnum() { Some((self.0 as i64) >> TAG_BITS) } else { None }
    }

    /// `#t` or `#f`.
    #[inline]
    #[must_use]
    pub const fn boolean(truth: bool) -> Self {
        if truth { Self::TRUE } else { Self::FALSE }
    }

    /// Whether this counts as true, as every value except `#f` does.
    #[inline]
    #[must_use]
    pub const fn is_true(self) -> bool {
        self.0 != Self::FALSE.0
    }

    /// A character.
    #[inline]
    #[must_use]
    pub const fn character(c: char) -> Self {
        Self((c as u64) << 16 | KIND_CHARACTER << 8 | TAG_IMMEDIATE)
    }

    /// The character, if this is one.
    #[inline]
    #[must_use]
    pub fn as_character(self) -> Option<char> {
        if self.0 & 0xffff == KIND_CHARACTER << 8 | TAG_IMMEDIATE {
            char::from_u32((self.0 >> 16) as u32)
        } else {
            None
        }
    }

    /// The immediate with this word, if there is one.
    pub fn immediate_of_word(word: u64) -> Option<Self> {
        let value = Self(word);
        let is_known = value.as_character().is_some()
            || (Self::NIL.0..=Self::ABSENT.0).step_by(1 << 8).any(|known| known == word);
        is_known.then_some(value)
    }

    /// A symbol.
    #[inline]
    #[must_use]
    pub fn symbol(symbol: Symbol) -> Self {
        Self(core::ptr::from_ref(symbol.data()).expose_provenance() as u64 | TAG_SYMBOL)
    }

    /// Whether this is a symbol.
    #[inline]
    #[must_use]
    pub const fn is_symbol(self) -> bool {
        self.0 & TAG_MASK == TAG_SYMBOL
    }

    /// A pair at `address`, which is 16-byte aligned. Only for the heap.
    #[inline]
    #[must_use]
    pub const fn pair_at(address: usize) -> Self {
        Self(address as u64 | TAG_PAIR)
    }

    /// Whether this is a pair.
    #[inline]
    #[must_use]
    pub const fn is_pair(self) -> bool {
        self.0 & PAIR_MASK == TAG_PAIR
    }

    /// Whether this is a mutable pair.
    #[inline]
    #[must_use]
    pub const fn is_mutable_pair(self) -> bool {
        self.0 & TAG_MASK == TAG_PAIR
    }

    /// The same pair, marked as a literal's. No other code may know the pair before, and only this
    /// word may be used afterwards.
    #[must_use]
    pub const fn into_literal_pair(self) -> Self {
        debug_assert!(self.is_pair(), "only pairs need a tag to be literals");
        Self(self.0 | TAG_LITERAL)
    }

    /// An object at `address`, which is 16-byte aligned. Only for the heap.
    #[inline]
    #[must_use]
    pub const fn object_at(address: usize) -> Self {
        Self(address as u64 | TAG_OBJECT)
    }

    /// Whether this is an object with a header.
    #[inline]
    #[must_use]
    pub const fn is_object(self) -> bool {
        self.0 & TAG_MASK == TAG_OBJECT
    }

    /// The address in the word of a pair, object or symbol.
    #[inline]
    #[must_use]
    pub const fn address(self) -> usize {
        (self.0 & !TAG_MASK) as usize
    }
}
