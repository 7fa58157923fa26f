//! Arithmetic on integers of thousands of digits, in slices. Without slices, one call of
//! `num-bigint` could block its thread for milliseconds.
//!
//! ```text
//!   operands ── split into slices of about 2^20 limb products ──► num-bigint ── pause ──► next slice … ── joined
//! ```
//!
//! | operation | algorithm | source |
//! |---|---|---|
//! | product | Toom-Cook in three parts | Bodrato, "Towards optimal Toom-Cook multiplication", 2007 |
//! | quotient and remainder | recursive division | Brent and Zimmermann, "Modern Computer Arithmetic", algorithm 1.8 |
//! | greatest common divisor | Lehmer, with cofactors of 62 bits | the same, algorithm 1.15 |
//! | square root | recursive, with the remainder | Zimmermann, "Karatsuba Square Root", 1999 |
//! | to and from digits | by powers of the radix, halves first | "Modern Computer Arithmetic", 1.7 |
//!
//! All operations are pure: the caller decides what a pause does. **Invariant:** shifts, sums and
//! copies are not split, so a slice takes at least as long as the slowest of these. On integers of
//! 2^27 bits they take milliseconds.

mod digits;

pub use digits::{of_digits, text};

use crate::Pause;
use core::mem::swap;
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Zero};

/// Limb products in one slice.
const PART: u64 = 1 << 20;
/// Limbs that a step of [`gcd`] processes without a pause.
const PART_LIMBS: usize = 1 << 16;
/// The longest integers, in limbs, whose greatest common divisor `num-bigint` computes.
const DIVISOR_LIMBS: u64 = 8;
/// A divisor longer than twice the quotient by more than this is first reduced to its upper part.
const UPPER_BITS: u64 = 1 << 12;
/// The longest integers, in bits, whose square root `num-bigint` computes.
const ROOT_BITS: u64 = 1 << 13;

/// The length in 64-bit limbs.
fn limbs(n: &BigUint) -> u64 {
    n.bits().div_ceil(64)
}

/// Half of `bits`, rounded to a multiple of 64, so that splitting there moves whole limbs.
fn half(bits: u64) -> u64 {
    bits / 128 * 64
}

/// `n` without its lowest `at` bits, and those bits. `at` is a multiple of 64.
fn split(n: &BigUint, at: u64) -> (BigUint, BigUint) {
    let low = n.iter_u32_digits().take(at as usize / 32).collect();
    (n >> at, BigUint::new(low))
}

fn join(high: BigUint, at: u64, low: &BigUint) -> BigUint {
    (high << at) + low
}

/// Whether multiplying or dividing `a` and `b` takes only one slice.
#[must_use]
pub fn is_short(a: &BigInt, b: &BigInt) -> bool {
    limbs(a.magnitude()) * limbs(b.magnitude()) <= PART
}

/// `x * y`.
///
/// # Errors
/// As `pause`.
pub fn multiply<E>(x: &BigUint, y: &BigUint, pause: Pause<'_, E>) -> Result<BigUint, E> {
    let (short, long) = if x.bits() <= y.bits() { (x, y) } else { (y, x) };
    if limbs(short) * limbs(long) <= PART {
        return Ok(short * long);
    }
    if limbs(short) * 2 > limbs(long) {
        return toom_3(short, long, pause);
    }
    let at = half(long.bits());
    let (high, low) = split(long, at);
    let low = multiply(short, &low, pause)?;
    pause()?;
    let high = multiply(short, &high, pause)?;
    pause()?;
    Ok(join(high, at, &low))
}

/// `x * y` for signed integers.
///
/// # Errors
/// As `pause`.
pub fn product<E>(x: &BigInt, y: &BigInt, pause: Pause<'_, E>) -> Result<BigInt, E> {
    let magnitude = multiply(x.magnitude(), y.magnitude(), pause)?;
    Ok(BigInt::from_biguint(x.sign() * y.sign(), magnitude))
}

/// `x * y` by Toom-Cook in three parts. Both operands are polynomials of degree 2. Their product
/// has degree 4, and its values at 0, 1, -1, -2 and infinity determine it.
fn toom_3<E>(x: &BigUint, y: &BigUint, pause: Pause<'_, E>) -> Result<BigUint, E> {
    let third = limbs(y).div_ceil(3) * 64;
    let x = values(x, third);
    pause()?;
    let y = values(y, third);
    let mut products = [const { BigInt::ZERO }; 5];
    for (i, product_there) in products.iter_mut().enumerate() {
        pause()?;
        *product_there = product(&x[i], &y[i], pause)?;
    }
    pause()?;
    let [at_0, at_1, at_minus_1, at_minus_2, top] = products;
    let mut third_power = (at_minus_2 - &at_1) / 3u32;
    let mut first_power: BigInt = (at_1 - &at_minus_1) >> 1;
    pause()?;
    let mut second_power = at_minus_1 - &at_0;
    third_power = ((&second_power - third_power) >> 1) + (&top << 1);
    pause()?;
    second_power += &first_power - &top;
    first_power -= &third_power;
    let mut sum = top;
    for coefficient in [third_power, second_power, first_power, at_0] {
        pause()?;
        sum = (sum << third) + coefficient;
    }
    Ok(sum.into_parts().1)
}

/// The values at 0, 1, -1, -2 and infinity of the polynomial whose coefficients are three parts of
/// `n`, `third` bits each.
fn values(n: &BigUint, third: u64) -> [BigInt; 5] {
    let (high, low) = split(n, third);
    let (high, middle) = split(&high, third);
    let [low, middle, high] = [low, middle, high].map(BigInt::from);
    let even = &low + &high;
    let at_minus_1 = &even - &middle;
    let at_minus_2 = ((&at_minus_1 + &high) << 1) - &low;
    [low, even + middle, at_minus_1, at_minus_2, high]
}

/// Quotient and remainder. `b` is not zero.
///
/// # Errors
/// As `pause`.
pub fn divide<E>(a: &BigUint, b: &BigUint, pause: Pause<'_, E>) -> Result<(BigUint, BigUint), E> {
    if a < b {
        return Ok((BigUint::ZERO, a.clone()));
    }
    let (length, quotient_length) = (b.bits(), a.bits() - b.bits() + 1);
    if length > 2 * quotient_length + UPPER_BITS {
        // The divisor's upper part determines the quotient. `num-bigint` would divide by all of it.
        let at = (length - quotient_length - 64) / 64 * 64;
        return divide_by_upper(a, b, &split(b, at), at, pause);
    }
    // For a short divisor, each limb of the quotient costs several times as much.
    if (limbs(a) - limbs(b) + 1) * (limbs(b) + 8) <= PART {
        return Ok(a.div_rem(b));
    }
    pause()?;
    let at = half(quotient_length);
    let (high, low) = split(a, at);
    if quotient_length > length {
        let (upper, rest) = divide(&high, b, pause)?;
        let (lower, rest) = divide(&join(rest, at, &low), b, pause)?;
        return Ok((join(upper, at, &lower), rest));
    }
    let parts = split(b, at);
    let (upper, rest) = divide_by_upper(&high, b, &parts, at, pause)?;
    let (lower, rest) = divide_by_upper(&join(rest, at, &low), b, &parts, at, pause)?;
    Ok((join(upper, at, &lower), rest))
}

/// Quotient and remainder, where b = upper * 2^at + lower and the quotient is no longer than
/// `upper`. Dividing by `upper` gives a quotient that is too large by a few at most.
fn divide_by_upper<E>(
    a: &BigUint,
    b: &BigUint,
    (upper, lower): &(BigUint, BigUint),
    at: u64,
    pause: Pause<'_, E>,
) -> Result<(BigUint, BigUint), E> {
    let (high, low) = split(a, at);
    let (mut quotient, rest) = divide(&high, upper, pause)?;
    pause()?;
    let excess = multiply(&quotient, lower, pause)?;
    pause()?;
    let mut rest = join(rest, at, &low);
    while rest < excess {
        rest += b;
        quotient -= 1u32;
    }
    Ok((quotient, rest - excess))
}

/// The greatest common divisor.
///
/// The leading 128 bits yield the quotients of Euclid's algorithm as long as they are certain to be
/// those of the whole integers. All of these steps are then applied to the whole integers in one
/// pass.
///
/// # Errors
/// As `pause`.
pub fn gcd<E>(a: &BigUint, b: &BigUint, pause: Pause<'_, E>) -> Result<BigUint, E> {
    let (a, b) = if a < b { (b, a) } else { (a, b) };
    if limbs(a) <= DIVISOR_LIMBS {
        return Ok(a.gcd(b));
    }
    let (mut a, mut b) = (a.to_u64_digits(), b.to_u64_digits());
    let mut passed = 0;
    while b.len() as u64 > DIVISOR_LIMBS {
        match cofactors(&a, &b) {
            Some(cofactors) => combine(&mut a, &mut b, cofactors, &mut passed, pause)?,
            None => {
                let (_, rest) = divide(&of_limbs(&a), &of_limbs(&b), pause)?;
                pause()?;
                a = rest.to_u64_digits();
            }
        }
        if a.len() < b.len() || a.len() == b.len() && a.iter().rev().lt(b.iter().rev()) {
            swap(&mut a, &mut b);
        }
    }
    let (a, b) = (of_limbs(&a), of_limbs(&b));
    if b.is_zero() {
        return Ok(a);
    }
    let (_, rest) = divide(&a, &b, pause)?;
    Ok(b.gcd(&rest))
}

fn of_limbs(limbs: &[u64]) -> BigUint {
    BigUint::new(limbs.iter().flat_map(|&limb| [limb as u32, (limb >> 32) as u32]).collect())
}

/// Several steps of Euclid's algorithm as one matrix. The steps turn a, b into ±(u₀a - v₀b), ∓(u₁a
/// - v₁b), with the upper signs after an even number of steps.
struct Cofactors {
    u: [u64; 2],
    v: [u64; 2],
    is_even: bool,
}

/// The steps that the leading bits determine; `None` if they determine not even one. `a` is not
/// less than `b`, and longer than two limbs.
///
/// Let a = x 2^s + a', b = y 2^s + b'. After some steps the remainder of x and y is r = ±(ux - vy),
/// that of a and b is r 2^s ± (ua' - vb'). The last term is below v 2^s in magnitude, because u <=
/// v. So no remainder becomes negative while r >= v. Such steps keep the greatest common divisor,
/// and each makes the sum of a and b smaller.
fn cofactors(a: &[u64], b: &[u64]) -> Option<Cofactors> {
    let (mut x, mut y) = leading(a, b);
    let mut cofactors = Cofactors { u: [1, 0], v: [0, 1], is_even: true };
    let Cofactors { u, v, is_even } = &mut cofactors;
    while let Some(quotient) = x.checked_div(y) {
        let rest = x - quotient * y;
        let next =
            u64::try_from(quotient).ok().and_then(|q| q.checked_mul(v[1])?.checked_add(v[0]));
        let Some(next) = next.filter(|&v| v < 1 << 62 && rest >= v.into()) else { break };
        (x, y) = (y, rest);
        *u = [u[1], u[0] + quotient as u64 * u[1]];
        *v = [v[1], next];
        *is_even = !*is_even;
    }
    (cofactors.v[0] > 0).then_some(cofactors)
}

/// The 128 highest bits of `a`, and the bits of `b` of the same weight.
fn leading(a: &[u64], b: &[u64]) -> (u128, u128) {
    let top = a.len() - 1;
    let shift = a[top].leading_zeros();
    let of = |n: &[u64]| {
        let limb = |i: usize| u128::from(n.get(i).copied().unwrap_or(0));
        let high = limb(top) << 64 | limb(top - 1);
        high << shift | limb(top - 2) >> (64 - shift)
    };
    (of(a), of(b))
}

/// Applies the steps to `a` and `b`. `passed` counts limbs since the last pause.
fn combine<E>(
    a: &mut Vec<u64>,
    b: &mut Vec<u64>,
    Cofactors { u, v, is_even }: Cofactors,
    passed: &mut usize,
    pause: Pause<'_, E>,
) -> Result<(), E> {
    b.resize(a.len(), 0);
    // In both cases the first of each pair has the positive sign.
    let (p, q, of_p, of_q) = if is_even {
        (a, b, [u[0], v[0]], [v[1], u[1]])
    } else {
        (b, a, [v[0], u[0]], [u[1], v[1]])
    };
    let (mut carry_p, mut carry_q) = (0i128, 0i128);
    for (p, q) in p.chunks_mut(PART_LIMBS).zip(q.chunks_mut(PART_LIMBS)) {
        for (p, q) in p.iter_mut().zip(&mut *q) {
            // The factors are below 2^62, so no sum reaches 2^127.
            let times = |n: u64, factor: u64| (u128::from(n) * u128::from(factor)) as i128;
            carry_p += times(*p, of_p[0]) - times(*q, of_p[1]);
            carry_q += times(*q, of_q[0]) - times(*p, of_q[1]);
            (*p, *q) = (carry_p as u64, carry_q as u64);
            carry_p >>= 64;
            carry_q >>= 64;
        }
        *passed += p.len();
        if *passed >= PART_LIMBS {
            *passed = 0;
            pause()?;
        }
    }
    assert!(carry_p == 0 && carry_q == 0, "a remainder out of bounds");
    for n in [p, q] {
        n.truncate(n.iter().rposition(|&limb| limb != 0).map_or(0, |i| i + 1));
    }
    Ok(())
}

/// `base` to the power `exponent`, by squaring.
///
/// # Errors
/// As `pause`.
pub fn power<E>(base: &BigUint, exponent: u64, pause: Pause<'_, E>) -> Result<BigUint, E> {
    let twos = base.trailing_zeros().unwrap_or(0);
    let odd = base >> twos;
    let mut result = BigUint::one();
    for i in (0..u64::BITS - exponent.leading_zeros()).rev() {
        result = multiply(&result, &result, pause)?;
        pause()?;
        if exponent >> i & 1 == 1 {
            result = multiply(&result, &odd, pause)?;
        }
    }
    Ok(result << (twos * exponent))
}

/// The largest `s` with s² <= n, and n - s².
///
/// Let n = upper * 4^k + lower, with `upper` at least as long as the rest, so that its root is at
/// least 2^(k - 1). That root and a quotient for the lower half then give a result that is too
/// large by one at most.
///
/// # Errors
/// As `pause`.
pub fn root<E>(n: &BigUint, pause: Pause<'_, E>) -> Result<(BigUint, BigUint), E> {
    if n.bits() <= ROOT_BITS {
        let root = n.sqrt();
        let rest = n - &root * &root;
        return Ok((root, rest));
    }
    let at = half(n.bits() / 2);
    let (upper, lower) = split(n, 2 * at);
    let (lower, lowest) = split(&lower, at);
    let (upper_root, rest) = root(&upper, pause)?;
    pause()?;
    let (quotient, rest) = divide(&join(rest, at, &lower), &(&upper_root << 1), pause)?;
    pause()?;
    let square = multiply(&quotient, &quotient, pause)?;
    pause()?;
    let mut root = join(upper_root, at, &quotient);
    let mut rest = join(rest, at, &lowest);
    if rest < square {
        rest += (&root << 1) - 1u32;
        root -= 1u32;
    }
    Ok((root, rest - square))
}

#[cfg(test)]
mod tests;
