//! The numeric tower: fixnums, bignums, ratios, flonums, and complex numbers with two of them as
//! parts.
//!
//! ```text
//! Value  --Number::of-->  Number { Fixnum | Big | Ratio | Real }  --store-->  Value
//!   \__ both fixnums, or both flonums: computed on the tagged words directly __/
//! ```
//!
//! Invariant: a stored number is canonical. An integer that fits a fixnum is one. A ratio is in
//! lowest terms with a denominator above 1. The parts of a complex number are both exact or both
//! inexact, and its imaginary part is not an exact zero. So `eqv?` compares representations. Bound:
//! no exact integer exceeds [`INTEGER_BITS_MAX`]; an operation with a larger result raises an
//! error.

mod arithmetic;
mod compare;
mod complex;
mod convert;
mod division;
mod format;
mod power;
#[cfg(test)]
mod tests;
mod trigonometry;

pub use arithmetic::{add, div, mul, negate, reals, sub};
pub use compare::{compare, equal, greater, less, same};
pub use complex::{angle, is_complex, magnitude, parts, polar, rectangular};
pub use convert::{Rounding, exact, inexact, rounded};
pub use division::{Division, gcd, lcm, modulo, quotient, remainder};
pub use format::text_in_parts;
pub use format::{COMPLEX_RADIX_MAX, format_real, text_of, to_text};
pub use power::{exact_integer_sqrt, exp, expt, log, log_base, sqrt};
pub use trigonometry::{acos, asin, atan, atan2, cos, sin, tan};

use crate::heap::Mutator;
use crate::heap::object::{FLAG_NEGATIVE, Kind};
use crate::raise::{Raise, Result};
use crate::value::Value;
use kyocho_syntax::datum::NumberLiteral;
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use num_bigint::{BigInt, BigUint, Sign};
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

/// Called between two slices of long arithmetic. Its error is a raise.
type Pause<'a> = kyocho_bignum::Pause<'a, Raise>;

/// The largest exact integer, in bits: 16 MiB. Multiplying two integers of half this size takes
/// seconds, in slices. Operations without slices, such as a copy or a sum, take milliseconds.
pub const INTEGER_BITS_MAX: u64 = 1 << 27;

/// The bound in this process.
static BITS_MAX: AtomicU64 = AtomicU64::new(INTEGER_BITS_MAX);

/// Reduces the maximum length of exact integers in the whole process. Use it if users who do not
/// trust each other share virtual processors, so that no single operation takes long.
pub fn bound_integers(bits_max: u64) {
    BITS_MAX.store(bits_max.min(INTEGER_BITS_MAX), Ordering::Relaxed);
}

/// The bound in effect.
#[must_use]
pub fn integer_bits_max() -> u64 {
    BITS_MAX.load(Ordering::Relaxed)
}

/// A real number, unpacked.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// An exact integer that fits a machine word.
    Fixnum(i64),
    /// An exact integer of any length.
    Big(BigInt),
    /// An exact ratio, not an integer.
    Ratio(BigRational),
    /// An inexact real.
    Real(f64),
}

impl Number {
    /// The number that `value` denotes, if it is real.
    #[must_use]
    pub fn of(value: Value) -> Option<Self> {
        if let Some(n) = value.as_fixnum() {
            return Some(Self::Fixnum(n));
        }
        match value.kind()? {
            Kind::Flonum => value.as_flonum().map(Self::Real),
            Kind::Bignum => Some(Self::Big(big_of(value))),
            Kind::Ratio => {
                let numerator = Self::of(value.field(0)?)?.into_big()?;
                let denominator = Self::of(value.field(1)?)?.into_big()?;
                Some(Self::Ratio(BigRational::new_raw(numerator, denominator)))
            }
            _ => None,
        }
    }

    /// The real number that `value` denotes. `who` and `position` name the procedure and the
    /// argument in the error.
    ///
    /// # Errors
    /// `value` is not a real number.
    pub fn argument(who: &'static str, position: usize, value: Value) -> Result<Self> {
        Self::of(value).ok_or_else(|| {
            let expected = if is_complex(value) { "real number" } else { "number" };
            Raise::wrong_type(who, position, expected, value)
        })
    }

    /// The value for this number, in its canonical form.
    ///
    /// # Errors
    /// Out of memory, or an integer of more than [`integer_bits_max`] bits.
    pub fn store(self, m: &mut Mutator) -> Result {
        match self {
            Self::Fixnum(n) => integer(m, n),
            Self::Real(x) => Ok(m.flonum(x)?),
            Self::Big(n) => store_big(m, &n),
            Self::Ratio(r) if r.is_integer() => store_big(m, r.numer()),
            Self::Ratio(r) => {
                let numerator = store_big(m, r.numer())?;
                let denominator = store_big(m, r.denom())?;
                Ok(m.object_of(Kind::Ratio, &[numerator, denominator])?)
            }
        }
    }

    /// Whether this is exact.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !matches!(self, Self::Real(_))
    }

    /// Whether this is an integer, exact or not.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        match self {
            Self::Fixnum(_) | Self::Big(_) => true,
            Self::Ratio(_) => false,
            Self::Real(x) => x.is_finite() && x.fract() == 0.0,
        }
    }

    /// -1, 0 or 1; NaN counts as 0.
    #[must_use]
    pub fn sign(&self) -> i32 {
        match self {
            Self::Fixnum(n) => n.signum() as i32,
            Self::Big(n) => sign_of(n),
            Self::Ratio(r) => sign_of(r.numer()),
            Self::Real(x) => i32::from(*x > 0.0) - i32::from(*x < 0.0),
        }
    }

    /// The nearest flonum (ties to even); infinite if the magnitude is too large.
    #[must_use]
    pub fn to_real(&self) -> f64 {
        match self {
            Self::Fixnum(n) => *n as f64,
            Self::Big(n) => n.to_f64().unwrap_or(f64::NAN),
            Self::Ratio(r) => convert::ratio_to_real(r),
            Self::Real(x) => *x,
        }
    }

    /// This number, if it is an exact integer.
    pub fn into_big(self) -> Option<BigInt> {
        match self {
            Self::Fixnum(n) => Some(BigInt::from(n)),
            Self::Big(n) => Some(n),
            Self::Ratio(_) | Self::Real(_) => None,
        }
    }

    /// The exact ratio equal to this number; `None` for an infinity or a NaN.
    pub fn into_ratio(self) -> Option<BigRational> {
        match self {
            Self::Fixnum(n) => Some(BigRational::from_integer(BigInt::from(n))),
            Self::Big(n) => Some(BigRational::from_integer(n)),
            Self::Ratio(r) => Some(r),
            Self::Real(x) => convert::real_to_ratio(x),
        }
    }
}

/// Whether `value` is a number.
#[must_use]
pub fn is_number(value: Value) -> bool {
    is_real(value) || is_complex(value)
}

/// Whether `value` is a real number.
#[must_use]
pub fn is_real(value: Value) -> bool {
    value.is_fixnum() || matches!(value.kind(), Some(Kind::Flonum | Kind::Bignum | Kind::Ratio))
}

/// Stores a number literal.
///
/// # Errors
/// Out of memory, or an integer of more than [`integer_bits_max`] bits.
pub fn store_literal(m: &mut Mutator, literal: &NumberLiteral) -> Result {
    match literal {
        NumberLiteral::Integer(n) => integer(m, *n),
        NumberLiteral::Big(n) => store_big(m, n),
        NumberLiteral::Ratio(r) => Number::Ratio(r.clone()).store(m),
        NumberLiteral::Real(x) => Ok(m.flonum(*x)?),
        NumberLiteral::Complex(parts) => {
            let real = store_literal(m, &parts[0])?;
            let imaginary = store_literal(m, &parts[1])?;
            rectangular(m, real, imaginary)
        }
    }
}

/// Stores a machine integer, as a fixnum if it fits one.
///
/// # Errors
/// Out of memory.
#[inline]
pub fn integer(m: &mut Mutator, n: i64) -> Result {
    match Value::fixnum_checked(n) {
        Some(value) => Ok(value),
        None => store_short(m, i128::from(n)),
    }
}

/// Stores an exact integer.
///
/// # Errors
/// Out of memory, or more than [`integer_bits_max`] bits.
pub fn store_big(m: &mut Mutator, n: &BigInt) -> Result {
    check_bits(n.bits())?;
    Ok(m.integer(n)?)
}

/// The value of an exact integer of at most one limb. Products of fixnums are often that short, and
/// a `BigInt` would cost more.
#[inline]
fn short(value: Value) -> Option<i128> {
    if let Some(n) = value.as_fixnum() {
        return Some(i128::from(n));
    }
    if !value.is_kind(Kind::Bignum) || value.size_words() != 1 {
        return None;
    }
    let magnitude = i128::from(value.payload_word(0));
    Some(if value.flags() & FLAG_NEGATIVE == 0 { magnitude } else { -magnitude })
}

/// Stores an integer of at most two limbs.
fn store_short(m: &mut Mutator, n: i128) -> Result {
    if let Some(value) = i64::try_from(n).ok().and_then(Value::fixnum_checked) {
        return Ok(value);
    }
    let magnitude = n.unsigned_abs();
    let (low, high) = (magnitude as u64, (magnitude >> 64) as u64);
    let flags = if n < 0 { FLAG_NEGATIVE } else { 0 };
    let bignum = m.object(Kind::Bignum, flags, if high == 0 { 1 } else { 2 })?;
    bignum.set_payload_word(0, low);
    if high != 0 {
        bignum.set_payload_word(1, high);
    }
    Ok(bignum)
}

/// Checks that a result of `bits` bits is allowed.
///
/// # Errors
/// `bits` exceeds [`integer_bits_max`].
pub fn check_bits(bits: u64) -> Result<()> {
    let max = integer_bits_max();
    if bits > max {
        return Err(Raise::error(format!("exact integer of more than {max} bits"), Vec::new()));
    }
    Ok(())
}

fn big_of(value: Value) -> BigInt {
    let mut digits = Vec::with_capacity(value.size_words() * 2);
    for i in 0..value.size_words() {
        let limb = value.payload_word(i);
        digits.push(limb as u32);
        digits.push((limb >> 32) as u32);
    }
    let negative = value.flags() & FLAG_NEGATIVE != 0;
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    BigInt::from_biguint(sign, BigUint::new(digits))
}

fn sign_of(n: &BigInt) -> i32 {
    match n.sign() {
        Sign::Minus => -1,
        Sign::NoSign => 0,
        Sign::Plus => 1,
    }
}

/// The numerator of a rational number; for a flonum, as a flonum.
///
/// # Errors
/// `value` is not a rational number.
pub fn numerator(m: &mut Mutator, value: Value) -> Result {
    part(m, "numerator", value, |r| r.numer().clone())
}

/// The denominator of a rational number; for a flonum, as a flonum.
///
/// # Errors
/// `value` is not a rational number.
pub fn denominator(m: &mut Mutator, value: Value) -> Result {
    part(m, "denominator", value, |r| r.denom().clone())
}

fn part(
    m: &mut Mutator,
    who: &'static str,
    value: Value,
    take: fn(&BigRational) -> BigInt,
) -> Result {
    let number = Number::argument(who, 1, value)?;
    let is_exact = number.is_exact();
    let ratio =
        number.into_ratio().ok_or_else(|| Raise::wrong_type(who, 1, "rational number", value))?;
    debug_assert!(!ratio.denom().is_zero(), "a ratio without denominator");
    let result = Number::Big(take(&ratio));
    if is_exact { result.store(m) } else { Number::Real(result.to_real()).store(m) }
}

/// The ratio of two integers, reduced.
///
/// The denominator must not be zero.
#[must_use]
pub fn ratio(numerator: BigInt, denominator: BigInt) -> Number {
    debug_assert!(!denominator.is_zero(), "a ratio without denominator");
    if denominator.is_one() {
        return Number::Big(numerator);
    }
    Number::Ratio(BigRational::new(numerator, denominator))
}
