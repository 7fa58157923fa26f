//! Number literals, for the reader and for `string->number`.
//!
//! All of R7RS 7.1.1: radix and exactness prefixes, ratios, decimals with exponents, infinities and
//! NaN, complex numbers in rectangular and polar form.

use super::datum::NumberLiteral;
use core::convert::Infallible;
use kyocho_bignum::ratio::reduced;
use kyocho_bignum::{Pause, integer as bignum};
use num_bigint::{BigInt, BigUint};
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Maximum number of digits of a literal. The reader cannot be interrupted inside a number, and
/// takes some tenths of a second for this many.
pub const DIGITS_MAX: usize = 1_000_000;
/// Largest decimal exponent of an exact decimal: `#e1e100000` is already 40 KiB of integer.
pub const EXACT_EXPONENT_MAX: i64 = 100_000;
/// Bits of a fixnum: an integer that fits a machine word with its tag. `eq?` compares fixnums as
/// `eqv?` does.
pub const FIXNUM_BITS: u32 = 61;
/// The largest radix in which complex numbers are read: beyond it, `i` is a digit.
const RADIX_COMPLEX_MAX: u32 = 18;

/// Whether an integer is a fixnum.
#[must_use]
pub fn is_fixnum(n: i64) -> bool {
    const MAGNITUDE_BITS: u32 = FIXNUM_BITS - 1;
    (-(1 << MAGNITUDE_BITS)..1 << MAGNITUDE_BITS).contains(&n)
}

#[derive(Clone, Copy, PartialEq)]
enum Exactness {
    AsWritten,
    Exact,
    Inexact,
}

/// The number that `text` denotes. Its digits are in `radix` (2..=36) unless a prefix says
/// otherwise. `None` if it denotes no number, or exceeds [`DIGITS_MAX`] or [`EXACT_EXPONENT_MAX`].
#[must_use]
pub fn parse(text: &str, radix: u32) -> Option<NumberLiteral> {
    let Ok(literal) = parse_in_parts::<Infallible>(text, radix, &mut || Ok(()));
    literal
}

/// As [`parse`], in slices.
///
/// # Errors
/// As `pause`.
pub fn parse_in_parts<E>(
    text: &str,
    radix: u32,
    pause: Pause<'_, E>,
) -> Result<Option<NumberLiteral>, E> {
    let mut parts = Parts { pause, failure: None };
    let literal = parse_prefixed(text, radix, &mut parts);
    parts.failure.map_or(Ok(literal), Err)
}

/// The pause between slices of long work, and the error that ended the work, if any. After an error
/// no number is found.
struct Parts<'a, E> {
    pause: Pause<'a, E>,
    failure: Option<E>,
}

impl<E> Parts<'_, E> {
    fn of<T>(&mut self, work: impl FnOnce(Pause<'_, E>) -> Result<T, E>) -> Option<T> {
        work(self.pause).map_err(|failure| self.failure = Some(failure)).ok()
    }
}

fn parse_prefixed<E>(text: &str, radix: u32, parts: &mut Parts<'_, E>) -> Option<NumberLiteral> {
    if !text.is_ascii() || text.len() > DIGITS_MAX {
        return None;
    }
    let mut radix = radix;
    let mut exactness = Exactness::AsWritten;
    let mut rest = text;
    let (mut radix_given, mut exactness_given) = (false, false);
    while let Some(after) = rest.strip_prefix('#') {
        let letter = after.chars().next()?.to_ascii_lowercase();
        let given = match letter {
            'e' | 'i' => &mut exactness_given,
            _ => &mut radix_given,
        };
        if core::mem::replace(given, true) {
            return None;
        }
        match letter {
            'e' => exactness = Exactness::Exact,
            'i' => exactness = Exactness::Inexact,
            'b' => radix = 2,
            'o' => radix = 8,
            'd' => radix = 10,
            'x' => radix = 16,
            _ => return None,
        }
        rest = &after[1..];
    }
    parse_real(rest, radix, exactness, parts)
        .or_else(|| parse_complex(rest, radix, exactness, parts))
}

/// `real@real`, or an optional real followed by a signed one with an `i`.
fn parse_complex<E>(
    text: &str,
    radix: u32,
    exactness: Exactness,
    parts: &mut Parts<'_, E>,
) -> Option<NumberLiteral> {
    if radix > RADIX_COMPLEX_MAX {
        return None;
    }
    if let Some((magnitude, angle)) = text.split_once('@') {
        let magnitude = parse_real(magnitude, radix, exactness, parts)?;
        return polar(magnitude, parse_real(angle, radix, exactness, parts)?, exactness);
    }
    let body = text.strip_suffix(['i', 'I'])?;
    let signs = body.char_indices().filter(|(_, c)| matches!(c, '+' | '-')).map(|(at, _)| at);
    // The sign of the imaginary part is the last sign in the text, not counting that of an
    // exponent.
    signs.rev().take(2).find_map(|at| {
        let (real, imaginary) = body.split_at(at);
        let real = if real.is_empty() { "0" } else { real };
        let one = format!("{imaginary}1");
        let imaginary = if imaginary.len() == 1 { &one } else { imaginary };
        rectangular(real, imaginary, (radix, exactness), parts)
    })
}

fn rectangular<E>(
    real: &str,
    imaginary: &str,
    (radix, exactness): (u32, Exactness),
    parts: &mut Parts<'_, E>,
) -> Option<NumberLiteral> {
    let mut part = |text: &str, exactness| parse_real(text, radix, exactness, parts);
    let (x, y) = (part(real, exactness)?, part(imaginary, exactness)?);
    // If one part is inexact, both become inexact. An exact zero as imaginary part makes the number
    // real.
    let parts = match (&x, &y) {
        (_, NumberLiteral::Integer(0)) => return Some(x),
        (NumberLiteral::Real(_), NumberLiteral::Real(_)) => [x, y],
        (NumberLiteral::Real(_), _) => [x, part(imaginary, Exactness::Inexact)?],
        (_, NumberLiteral::Real(_)) => [part(real, Exactness::Inexact)?, y],
        _ => [x, y],
    };
    Some(NumberLiteral::Complex(Box::new(parts)))
}

fn polar(
    magnitude: NumberLiteral,
    angle: NumberLiteral,
    exactness: Exactness,
) -> Option<NumberLiteral> {
    let zero = NumberLiteral::Integer(0);
    if angle == zero || magnitude == zero {
        return Some(magnitude);
    }
    let (length, direction) = (real_of(&magnitude)?, real_of(&angle)?);
    let parts = [length * direction.cos(), length * direction.sin()];
    if exactness != Exactness::Exact {
        return Some(NumberLiteral::Complex(Box::new(parts.map(NumberLiteral::Real))));
    }
    let exact = |x| BigRational::from_float(x).map(|ratio| finish(ratio, exactness));
    let (real, imaginary) = (exact(parts[0])?, exact(parts[1])?);
    if imaginary == zero {
        return Some(real);
    }
    Some(NumberLiteral::Complex(Box::new([real, imaginary])))
}

/// The flonum nearest to a real number.
fn real_of(number: &NumberLiteral) -> Option<f64> {
    match number {
        NumberLiteral::Integer(n) => Some(*n as f64),
        NumberLiteral::Big(n) => n.to_f64(),
        NumberLiteral::Ratio(ratio) => ratio.to_f64(),
        NumberLiteral::Real(x) => Some(*x),
        NumberLiteral::Complex(_) => None,
    }
}

fn parse_real<E>(
    text: &str,
    radix: u32,
    exactness: Exactness,
    parts: &mut Parts<'_, E>,
) -> Option<NumberLiteral> {
    if let Some(special) = parse_special(text) {
        return (exactness != Exactness::Exact).then_some(NumberLiteral::Real(special));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() {
        return None;
    }
    if let Some((numerator, denominator)) = unsigned.split_once('/') {
        let numerator = digits(numerator, radix, parts)?;
        let denominator = digits(denominator, radix, parts)?;
        if denominator.is_zero() {
            return None;
        }
        let ratio = parts.of(|pause| reduced(signed(numerator, text), denominator, pause))?;
        return Some(finish(ratio, exactness));
    }
    if unsigned.chars().all(|c| c.is_digit(radix)) {
        return integer(text, unsigned, (radix, exactness), parts);
    }
    if radix != 10 {
        return None;
    }
    decimal(text, unsigned, exactness, parts)
}

fn integer<E>(
    text: &str,
    unsigned: &str,
    (radix, exactness): (u32, Exactness),
    parts: &mut Parts<'_, E>,
) -> Option<NumberLiteral> {
    if exactness != Exactness::Inexact
        && let Ok(small) = i64::from_str_radix(text, radix)
    {
        return Some(NumberLiteral::Integer(small));
    }
    if exactness == Exactness::Inexact && radix == 10 {
        return text.parse().ok().map(NumberLiteral::Real);
    }
    let magnitude = digits(unsigned, radix, parts)?;
    if exactness == Exactness::Inexact && magnitude.is_zero() {
        return Some(NumberLiteral::Real(if text.starts_with('-') { -0.0 } else { 0.0 }));
    }
    Some(finish(BigRational::from_integer(signed(magnitude, text)), exactness))
}

fn parse_special(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "+inf.0" => Some(f64::INFINITY),
        "-inf.0" => Some(f64::NEG_INFINITY),
        "+nan.0" | "-nan.0" => Some(f64::NAN),
        _ => None,
    }
}

fn digits<E>(text: &str, radix: u32, parts: &mut Parts<'_, E>) -> Option<BigInt> {
    if !are_digits(text, radix) {
        return None;
    }
    parts.of(|pause| bignum::of_digits(text, radix, pause)).map(BigInt::from)
}

fn are_digits(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_digit(radix))
}

fn signed(magnitude: BigInt, text: &str) -> BigInt {
    if text.starts_with('-') { -magnitude } else { magnitude }
}

/// `digits . digits e sign digits`, the point or the exponent present.
fn decimal<E>(
    text: &str,
    unsigned: &str,
    exactness: Exactness,
    parts: &mut Parts<'_, E>,
) -> Option<NumberLiteral> {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    if let Some(exponent) = exponent {
        let bare = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if bare.is_empty() || !all_digits(bare) {
            return None;
        }
    }
    if exactness != Exactness::Exact {
        return text.parse().ok().map(NumberLiteral::Real);
    }
    let exponent: i64 = exponent.map_or(Some(0), |exponent| exponent.parse().ok())?;
    let exponent = exponent.checked_sub(fraction.len() as i64)?;
    if exponent.abs() > EXACT_EXPONENT_MAX {
        return None;
    }
    let mantissa = signed(digits(&format!("{whole}{fraction}"), 10, parts)?, text);
    let ratio = parts.of(|pause| {
        let power = bignum::power(&BigUint::from(10u32), exponent.unsigned_abs(), pause)?.into();
        if exponent < 0 {
            return reduced(mantissa, power, pause);
        }
        bignum::product(&mantissa, &power, pause).map(BigRational::from_integer)
    })?;
    Some(finish(ratio, exactness))
}

fn finish(ratio: BigRational, exactness: Exactness) -> NumberLiteral {
    if exactness == Exactness::Inexact {
        let overflow = if ratio.is_negative() { f64::NEG_INFINITY } else { f64::INFINITY };
        return NumberLiteral::Real(ratio.to_f64().unwrap_or(overflow));
    }
    if !ratio.denom().is_one() {
        return NumberLiteral::Ratio(ratio);
    }
    match ratio.numer().to_i64() {
        Some(small) => NumberLiteral::Integer(small),
        None => NumberLiteral::Big(ratio.numer().clone()),
    }
}

/// Explains what is wrong with `text`, which [`parse`] refused. `None` if it does not look like a
/// number.
#[must_use]
pub fn explain(text: &str) -> Option<&'static str> {
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some((numerator, denominator)) = bare.split_once('/')
        && are_digits(numerator, 10)
        && are_digits(denominator, 10)
        && denominator.bytes().all(|digit| digit == b'0')
    {
        return Some("a ratio with denominator 0");
    }
    let numeric = bare.starts_with(|c: char| c.is_ascii_digit());
    (numeric && text.len() > DIGITS_MAX).then_some("a number of more than a million digits")
}

#[cfg(test)]
mod tests;
