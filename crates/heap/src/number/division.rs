//! Integer division in its variants, greatest common divisor, least common multiple.

use super::arithmetic::{Alike, alike};
use super::{Number, Pause, integer, short, store_big, store_short};
use crate::heap::Mutator;
use crate::raise::{Raise, Result};
use crate::value::Value;
use kyocho_bignum::integer as bignum;
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::Zero;

/// The rounding of the quotient, and whether the result is quotient or remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// Quotient towards zero.
    TruncateQuotient,
    /// Remainder with the dividend's sign.
    TruncateRemainder,
    /// Quotient towards minus infinity.
    FloorQuotient,
    /// Remainder with the divisor's sign.
    FloorRemainder,
}

impl Division {
    /// The quotient or remainder of two integers, exact or not. Errors name `who`.
    ///
    /// # Errors
    /// One is not an integer; `b` is zero; out of memory.
    pub fn apply(self, m: &mut Mutator, who: &'static str, a: Value, b: Value) -> Result {
        if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
            if y == 0 {
                return Err(Raise::divide_by_zero(who));
            }
            // The only overflow of a fixnum, FIXNUM_MIN / -1, is 2^60, which still fits a machine
            // word.
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
            Alike::Big(x, y) if bignum::is_short(&x, &y) => store_big(m, &self.of(x, y)),
            Alike::Big(x, y) => {
                let result = self.of_giants(&x, &y, &mut || m.pause(&[]))?;
                store_big(m, &result)
            }
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

    fn of_giants(self, x: &BigInt, y: &BigInt, pause: Pause<'_>) -> Result<BigInt> {
        let (quotient, rest) = truncated(x, y, pause)?;
        let is_between = !rest.is_zero() && x.sign() != y.sign();
        Ok(match self {
            Self::TruncateQuotient => quotient,
            Self::TruncateRemainder => rest,
            Self::FloorQuotient => quotient - u32::from(is_between),
            Self::FloorRemainder if is_between => rest + y,
            Self::FloorRemainder => rest,
        })
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

/// The quotient towards zero, and the remainder.
pub(super) fn truncated(x: &BigInt, y: &BigInt, pause: Pause<'_>) -> Result<(BigInt, BigInt)> {
    let (quotient, rest) = bignum::divide(x.magnitude(), y.magnitude(), pause)?;
    let quotient = BigInt::from_biguint(x.sign() * y.sign(), quotient);
    Ok((quotient, BigInt::from_biguint(x.sign(), rest)))
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
/// One is not an integer; out of memory.
pub fn gcd(m: &mut Mutator, position: usize, a: Value, b: Value) -> Result {
    fold(m, "gcd", position, (a, b), bignum::gcd, |x, y| x.gcd(&y))
}

/// The least common multiple of two integers, exact or not. An error about an argument names
/// `position` for `a` and the next one for `b`.
///
/// # Errors
/// One of them is not an integer; out of memory; the result is longer than
/// [`integer_bits_max`](super::integer_bits_max); the thread must end or stop ([`Mutator::pause`]).
pub fn lcm(m: &mut Mutator, position: usize, a: Value, b: Value) -> Result {
    fold(m, "lcm", position, (a, b), common_multiple, |x, y| x.lcm(&y))
}

fn common_multiple(x: &BigUint, y: &BigUint, pause: Pause<'_>) -> Result<BigUint> {
    if x.is_zero() || y.is_zero() {
        return Ok(BigUint::ZERO);
    }
    let divisor = bignum::gcd(x, y, pause)?;
    let (factor, _) = bignum::divide(x, &divisor, pause)?;
    bignum::multiply(&factor, y, pause)
}

fn fold(
    m: &mut Mutator,
    who: &'static str,
    position: usize,
    (a, b): (Value, Value),
    big: fn(&BigUint, &BigUint, Pause<'_>) -> Result<BigUint>,
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
    let [x, y] = operands.map(|operand| operand.into_parts().1);
    let result = Number::Big(big(&x, &y, &mut || m.pause(&[]))?.into());
    if exact { result.store(m) } else { Number::Real(result.to_real()).store(m) }
}
