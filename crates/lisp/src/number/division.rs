//! Integer division in its kinds, greatest common divisor, least common multiple.

use super::arithmetic::{Alike, alike};
use super::{Number, integer, short, store_big, store_short};
use crate::heap::Mutator;
use crate::raise::{Raise, Result};
use crate::value::Value;
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};

/// Which quotient, and whether the quotient or the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Quotient towards zero.
    TruncateQuotient,
    /// Rest with the dividend's sign.
    TruncateRemainder,
    /// Quotient towards minus infinity.
    FloorQuotient,
    /// Rest with the divisor's sign.
    FloorRemainder,
}

impl Division {
    /// `a` divided by `b`, two integers, exact or not; `who` is named in complaints.
    ///
    /// # Errors
    /// One is no integer; `b` is zero; no memory.
    pub fn apply(self, m: &mut Mutator, who: &'static str, a: Value, b: Value) -> Result {
        if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
            if y == 0 {
                return Err(Raise::divide_by_zero(who));
            }
            // The one overflow, FIXNUM_MIN / -1, is 2^60: no overflow of the machine word.
            return integer(m, self.of(x, y));
        }
        if let (Some(x), Some(y)) = (short(a), short(b))
            && y != 0
        {
            return store_short(m, self.of(x, y));
        }
        for (position, value) in [(1, a), (2, b)] {
            if !Number::of(value).is_some_and(|n| n.is_integer()) {
                return Err(Raise::wrong_type(who, position, "integer", value));
            }
        }
        match alike(who, a, b)? {
            Alike::Real(_, 0.0) => Err(Raise::divide_by_zero(who)),
            Alike::Real(x, y) => Ok(m.flonum(self.of_reals(x, y))?),
            Alike::Big(_, y) if y.is_zero() => Err(Raise::divide_by_zero(who)),
            Alike::Big(x, y) => store_big(m, &self.of(x, y)),
            Alike::Ratio(..) => Err(Raise::wrong_type(who, 1, "integer", a)),
        }
    }

    fn of<T: Integer>(self, x: T, y: T) -> T {
        match self {
            Self::TruncateQuotient => x / y,
            Self::TruncateRemainder => x % y,
            Self::FloorQuotient => x.div_floor(&y),
            Self::FloorRemainder => x.mod_floor(&y),
        }
    }

    fn of_reals(self, x: f64, y: f64) -> f64 {
        match self {
            Self::TruncateQuotient => (x / y).trunc(),
            Self::TruncateRemainder => x % y,
            Self::FloorQuotient => (x / y).floor(),
            Self::FloorRemainder => {
                let rest = x % y;
                if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
            }
        }
    }
}

/// `(quotient a b)`, for the machine.
///
/// # Errors
/// As [`Division::apply`].
#[inline]
pub fn quotient(m: &mut Mutator, a: Value, b: Value) -> Result {
    Division::TruncateQuotient.apply(m, "quotient", a, b)
}

/// `(remainder a b)`, for the machine.
///
/// # Errors
/// As [`Division::apply`].
#[inline]
pub fn remainder(m: &mut Mutator, a: Value, b: Value) -> Result {
    Division::TruncateRemainder.apply(m, "remainder", a, b)
}

/// `(modulo a b)`, for the machine.
///
/// # Errors
/// As [`Division::apply`].
#[inline]
pub fn modulo(m: &mut Mutator, a: Value, b: Value) -> Result {
    Division::FloorRemainder.apply(m, "modulo", a, b)
}

/// The greatest common divisor of two integers.
///
/// # Errors
/// One is no integer; no memory.
pub fn gcd(m: &mut Mutator, position: usize, a: Value, b: Value) -> Result {
    fold(m, "gcd", position, (a, b), |x, y| x.gcd(y), |x, y| x.gcd(&y))
}

/// The least common multiple of two integers.
///
/// # Errors
/// One is no integer; no memory; the result is too long.
pub fn lcm(m: &mut Mutator, position: usize, a: Value, b: Value) -> Result {
    fold(m, "lcm", position, (a, b), |x, y| x.lcm(y), |x, y| x.lcm(&y))
}

fn fold(
    m: &mut Mutator,
    who: &'static str,
    position: usize,
    (a, b): (Value, Value),
    big: fn(&BigInt, &BigInt) -> BigInt,
    word: fn(i128, i128) -> i128,
) -> Result {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        return store_big(m, &BigInt::from(word(i128::from(x), i128::from(y)).abs()));
    }
    let mut exact = true;
    let mut operands = [BigInt::zero(), BigInt::zero()];
    for (i, value) in [a, b].into_iter().enumerate() {
        let complaint = || Raise::wrong_type(who, position + i, "integer", value);
        let number = Number::of(value).filter(Number::is_integer).ok_or_else(complaint)?;
        exact &= number.is_exact();
        operands[i] = number.into_ratio().ok_or_else(complaint)?.to_integer();
    }
    let result = Number::Big(big(&operands[0], &operands[1]).abs());
    if exact { result.store(m) } else { Number::Real(result.to_real()).store(m) }
}
