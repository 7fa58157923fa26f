//! A primitive's arguments and their checks. Errors name the procedure, the position, what was
//! expected, and the argument.

use super::list_length::length;
use core::ops::Range;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::pause::PART;
use kyocho_heap::number::Number;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::text::{self, Text};
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;

/// A call of the primitive `who`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    who: &'static str,
    arguments: &'a [Value],
}

impl<'a> Call<'a> {
    #[inline]
    pub(crate) fn new(who: &'static str, arguments: &'a [Value]) -> Self {
        Self { who, arguments }
    }

    pub(crate) fn who(self) -> &'static str {
        self.who
    }

    pub(crate) fn count(self) -> usize {
        self.arguments.len()
    }

    /// Argument `i` (from 0), which exists by the checked number of arguments.
    #[inline]
    pub(crate) fn value(self, i: usize) -> Value {
        self.arguments[i]
    }

    /// Argument `i`, if it was passed.
    #[inline]
    pub(crate) fn optional(self, i: usize) -> Option<Value> {
        self.arguments.get(i).copied().filter(|&value| value != Value::ABSENT)
    }

    #[cold]
    pub(crate) fn wrong(self, i: usize, expected: &'static str) -> Raise {
        Raise::wrong_type(self.who, i + 1, expected, self.arguments[i])
    }

    #[cold]
    pub(crate) fn outside(self, i: usize, bound: impl Into<String>) -> Raise {
        Raise::out_of_range(self.who, i + 1, self.arguments[i], bound)
    }

    /// An exact integer in the range of fixnums.
    #[inline]
    pub(crate) fn fixnum(self, i: usize) -> Result<i64> {
        self.value(i).as_fixnum().ok_or_else(|| self.wrong(i, "exact integer"))
    }

    /// A number.
    pub(crate) fn number(self, i: usize) -> Result<Number> {
        Number::argument(self.who, i + 1, self.value(i))
    }

    /// A count or an index: an exact non-negative integer.
    #[inline]
    pub(crate) fn count_at(self, i: usize) -> Result<usize> {
        match self.value(i).as_fixnum() {
            Some(n) if n >= 0 => Ok(n as usize),
            Some(_) => Err(self.outside(i, "0 or more")),
            None => Err(self.wrong(i, "exact non-negative integer")),
        }
    }

    /// An index below `length`.
    #[inline]
    pub(crate) fn index(self, i: usize, length: usize) -> Result<usize> {
        match self.value(i).as_fixnum() {
            Some(n) if (n as u64) < length as u64 => Ok(n as usize),
            Some(_) => Err(self.outside(i, format!("0 <= index < {length}"))),
            None => Err(self.wrong(i, "exact non-negative integer")),
        }
    }

    /// The range in an object of `length` given by arguments `i` and `i + 1`, both optional.
    pub(crate) fn range(self, i: usize, length: usize) -> Result<Range<usize>> {
        let start = match self.optional(i) {
            Some(_) => self.bound(i, 0, length)?,
            None => 0,
        };
        let end = match self.optional(i + 1) {
            Some(_) => self.bound(i + 1, start, length)?,
            None => length,
        };
        Ok(start..end)
    }

    /// An index from `low` up to and including `high`.
    pub(crate) fn bound(self, i: usize, low: usize, high: usize) -> Result<usize> {
        match self.value(i).as_fixnum() {
            Some(n) if n >= low as i64 && n <= high as i64 => Ok(n as usize),
            Some(_) => Err(self.outside(i, format!("{low} <= index <= {high}"))),
            None => Err(self.wrong(i, "exact non-negative integer")),
        }
    }

    #[inline]
    pub(crate) fn character(self, i: usize) -> Result<char> {
        self.value(i).as_character().ok_or_else(|| self.wrong(i, "character"))
    }

    pub(crate) fn symbol(self, i: usize) -> Result<Symbol> {
        self.value(i).as_symbol().ok_or_else(|| self.wrong(i, "symbol"))
    }

    #[inline]
    pub(crate) fn text(self, i: usize) -> Result<Text> {
        Text::of(self.value(i)).ok_or_else(|| self.wrong(i, "string"))
    }

    /// A mutable string.
    pub(crate) fn mutable_text(self, i: usize) -> Result<Text> {
        let text = self.text(i)?;
        if text::is_mutable(self.value(i)) {
            Ok(text)
        } else {
            Err(self.wrong(i, "mutable string"))
        }
    }

    /// A string as a Rust string.
    pub(crate) fn string(self, i: usize) -> Result<String> {
        self.text(i).map(Text::to_rust)
    }

    /// The length of a vector.
    #[inline]
    pub(crate) fn vector(self, i: usize) -> Result<usize> {
        self.value(i).vector_length().ok_or_else(|| self.wrong(i, "vector"))
    }

    /// The elements of a proper list. A [pause](kyocho_heap::heap::pause) that follows must keep
    /// them.
    ///
    /// # Errors
    /// It is not one; or as [`Mutator::pause`].
    pub(crate) fn list(self, m: &mut Mutator, i: usize) -> Result<Vec<Value>> {
        let length = self.list_length(m, i)?;
        let mut elements = Vec::with_capacity(length);
        let mut rest = self.value(i);
        // Bounded by the measured length, because another thread may be extending the list.
        while let (true, Some((car, cdr))) = (elements.len() < length, rest.uncons()) {
            elements.push(car);
            rest = cdr;
            if elements.len().is_multiple_of(PART) {
                elements.push(rest);
                m.pause_with(&mut elements)?;
                elements.pop();
            }
        }
        Ok(elements)
    }

    /// The length of a proper list.
    ///
    /// # Errors
    /// It is not one; or as [`Mutator::pause`].
    pub(crate) fn list_length(self, m: &mut Mutator, i: usize) -> Result<usize> {
        length(m, self.value(i))?.ok_or_else(|| self.wrong(i, "proper list"))
    }
}
