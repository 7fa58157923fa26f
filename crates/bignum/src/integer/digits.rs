//! Conversion of long integers to and from digits. An integer is halved by powers of the radix
//! until `num-bigint` can convert the parts.
//!
//! Radices that are powers of two take linear time and are converted without slices.

use super::{divide, multiply, power};
use crate::Pause;
use num_bigint::BigUint;
use num_traits::{Num, Zero};

/// The longest integers, in bits, that are not split.
const PART_BITS: u64 = 1 << 14;

/// The powers of the radix that integers of `bits` need, each the square of the one before. The
/// first power is the radix to the power `digits`.
fn powers<E>(radix: u32, digits: usize, bits: u64, pause: Pause<'_, E>) -> Result<Vec<BigUint>, E> {
    let mut powers = vec![power(&BigUint::from(radix), digits as u64, pause)?];
    while let Some(last) = powers.last()
        && last.bits() * 2 <= bits + 1
    {
        let next = multiply(last, last, pause)?;
        pause()?;
        powers.push(next);
    }
    Ok(powers)
}

/// Length in digits of the shortest texts that are not split.
fn digits_of_part(radix: u32) -> usize {
    (PART_BITS / u64::from(radix.ilog2() + 1)) as usize
}

/// The text of `n` in `radix` (2..=36).
///
/// # Errors
/// As `pause`.
pub fn text<E>(n: &BigUint, radix: u32, pause: Pause<'_, E>) -> Result<String, E> {
    if radix.is_power_of_two() || n.bits() <= PART_BITS {
        return Ok(n.to_str_radix(radix));
    }
    let digits = digits_of_part(radix);
    let powers = powers(radix, digits, n.bits(), pause)?;
    let mut out = String::new();
    push_digits(&mut out, n, (radix, digits), &powers, pause)?;
    Ok(out)
}

/// Appends the digits of `n`. If `out` has digits already, zeros fill up to the digits of the last
/// power's square, which is above `n`.
fn push_digits<E>(
    out: &mut String,
    n: &BigUint,
    (radix, digits): (u32, usize),
    powers: &[BigUint],
    pause: Pause<'_, E>,
) -> Result<(), E> {
    if let Some((power, smaller)) = powers.split_last() {
        let (upper, lower) = divide(n, power, pause)?;
        pause()?;
        if !out.is_empty() || !upper.is_zero() {
            push_digits(out, &upper, (radix, digits), smaller, pause)?;
        }
        return push_digits(out, &lower, (radix, digits), smaller, pause);
    }
    let text = n.to_str_radix(radix);
    if !out.is_empty() {
        out.extend(core::iter::repeat_n('0', digits - text.len()));
    }
    out.push_str(&text);
    pause()
}

/// The integer that `text` denotes. `text` has at least one digit in `radix` (2..=36), and nothing
/// else.
///
/// # Errors
/// As `pause`.
///
/// # Panics
/// If `text` is empty, or has another character.
pub fn of_digits<E>(text: &str, radix: u32, pause: Pause<'_, E>) -> Result<BigUint, E> {
    let digits = digits_of_part(radix);
    if radix.is_power_of_two() || text.len() <= digits {
        return Ok(BigUint::from_str_radix(text, radix).expect("digits alone"));
    }
    let bits = text.len() as u64 * u64::from(radix.ilog2() + 1);
    let powers = powers(radix, digits, bits, pause)?;
    join_digits(text, (radix, digits), &powers, pause)
}

fn join_digits<E>(
    text: &str,
    (radix, digits): (u32, usize),
    powers: &[BigUint],
    pause: Pause<'_, E>,
) -> Result<BigUint, E> {
    let Some((power, smaller)) = powers.split_last() else {
        pause()?;
        return Ok(BigUint::from_str_radix(text, radix).expect("digits alone"));
    };
    let low_digits = digits << smaller.len();
    if text.len() <= low_digits {
        return join_digits(text, (radix, digits), smaller, pause);
    }
    let (upper, lower) = text.split_at(text.len() - low_digits);
    let upper = join_digits(upper, (radix, digits), smaller, pause)?;
    let lower = join_digits(lower, (radix, digits), smaller, pause)?;
    let upper = multiply(&upper, power, pause)?;
    pause()?;
    Ok(upper + lower)
}
