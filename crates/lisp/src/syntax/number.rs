//! Number literals, for the reader and for `string->number`.
//!
//! All of R7RS 7.1.1 but complex numbers: radix and exactness prefixes, ratios, decimals with
//! exponents, infinities and NaN.

use super::datum::NumberLiteral;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Num, One, Pow, Signed, ToPrimitive, Zero};

/// Digits that a literal may have: reading more takes time in their square.
pub const DIGITS_MAX: usize = 1_000_000;
/// Largest decimal exponent of an exact decimal: `#e1e100000` is already 40 KiB of integer.
pub const EXACT_EXPONENT_MAX: i64 = 100_000;

#[derive(Clone, Copy, PartialEq)]
enum Exactness {
    AsWritten,
    Exact,
    Inexact,
}

/// The number that `text` denotes when digits are in `radix` (2, 8, 10 or 16) unless it says
/// otherwise; `None` where it denotes none, a complex number, or is past [`DIGITS_MAX`] or
/// [`EXACT_EXPONENT_MAX`].
#[must_use]
pub fn parse(text: &str, radix: u32) -> Option<NumberLiteral> {
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
    parse_real(rest, radix, exactness)
}

fn parse_real(text: &str, radix: u32, exactness: Exactness) -> Option<NumberLiteral> {
    if let Some(special) = parse_special(text) {
        return (exactness != Exactness::Exact).then_some(NumberLiteral::Real(special));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() {
        return None;
    }
    if let Some((numerator, denominator)) = unsigned.split_once('/') {
        let numerator = digits(numerator, radix)?;
        let denominator = digits(denominator, radix)?;
        if denominator.is_zero() {
            return None;
        }
        let ratio = BigRational::new(signed(numerator, text), denominator);
        return Some(finish(ratio, exactness));
    }
    if unsigned.chars().all(|c| c.is_digit(radix)) {
        return integer(text, unsigned, radix, exactness);
    }
    if radix != 10 {
        return None;
    }
    decimal(text, unsigned, exactness)
}

fn integer(text: &str, unsigned: &str, radix: u32, exactness: Exactness) -> Option<NumberLiteral> {
    if exactness != Exactness::Inexact
        && let Ok(small) = i64::from_str_radix(text, radix)
    {
        return Some(NumberLiteral::Integer(small));
    }
    if exactness == Exactness::Inexact && radix == 10 {
        return text.parse().ok().map(NumberLiteral::Real);
    }
    let magnitude = digits(unsigned, radix)?;
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

fn digits(text: &str, radix: u32) -> Option<BigInt> {
    if text.is_empty() || !text.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    BigInt::from_str_radix(text, radix).ok()
}

fn signed(magnitude: BigInt, text: &str) -> BigInt {
    if text.starts_with('-') { -magnitude } else { magnitude }
}

/// `digits . digits e sign digits`, the point or the exponent present.
fn decimal(text: &str, unsigned: &str, exactness: Exactness) -> Option<NumberLiteral> {
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
    let mantissa = signed(digits(&format!("{whole}{fraction}"), 10)?, text);
    let power = BigInt::from(10).pow(exponent.unsigned_abs());
    let ratio = if exponent < 0 {
        BigRational::new(mantissa, power)
    } else {
        BigRational::from_integer(mantissa * power)
    };
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

/// Whether `text`, which [`parse`] refused, looks like a number that we do not have: what to say
/// about it.
#[must_use]
pub fn explain(text: &str) -> Option<&'static str> {
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some((numerator, denominator)) = bare.split_once('/')
        && digits(numerator, 10).is_some()
        && digits(denominator, 10).is_some_and(|d| d.is_zero())
    {
        return Some("a ratio with denominator 0");
    }
    if is_complex(text) {
        return Some("a complex number, which this system does not have");
    }
    let numeric = bare.starts_with(|c: char| c.is_ascii_digit());
    (numeric && text.len() > DIGITS_MAX).then_some("a number of more than a million digits")
}

fn is_complex(text: &str) -> bool {
    let is_real = |part: &str| parse(part, 10).is_some();
    if let Some((magnitude, angle)) = text.split_once('@') {
        return is_real(magnitude) && is_real(angle);
    }
    let Some(body) = text.strip_suffix(['i', 'I']) else { return false };
    let is_part = |part: &str| matches!(part, "+" | "-") || is_real(part);
    let signs = body.char_indices().filter(|(_, c)| matches!(c, '+' | '-')).map(|(at, _)| at);
    signs.into_iter().any(|at| {
        let (real, imaginary) = body.split_at(at);
        (real.is_empty() || is_real(real)) && is_part(imaginary)
    })
}

#[cfg(test)]
mod tests;
