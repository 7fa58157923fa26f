//! Numbers as text. In radix ten a flonum has the shortest text that reads back as the same number.

use super::{Number, Pause, is_complex, parts};
use crate::raise::Result;
use crate::value::Value;
use core::fmt::Write;
use kyocho_bignum::integer as bignum;
use num_bigint::BigInt;
use num_traits::Signed;

/// Decimal exponents up to this one, or from [`EXPONENT_HIGH`] on, are written with an `e`.
const EXPONENT_LOW: i32 = -7;
const EXPONENT_HIGH: i32 = 21;
/// Maximum number of digits after the point in an odd radix, in which a binary fraction never ends.
/// Enough for 53 bits in radix 3.
const FRACTION_DIGITS_MAX: usize = 60;

/// The text of `number` in `radix` (2..=36).
///
/// # Panics
/// `radix` is outside 2..=36.
#[must_use]
pub fn to_text(number: &Number, radix: u32) -> String {
    // The pause never fails, so there is a result.
    real_in_parts(number, radix, &mut || Ok(())).unwrap_or_default()
}

fn real_in_parts(number: &Number, radix: u32, pause: Pause<'_>) -> Result<String> {
    assert!((2..=36).contains(&radix), "radix {radix}");
    Ok(match number {
        Number::Fixnum(n) if radix == 10 => n.to_string(),
        Number::Fixnum(n) => word_to_text(*n, radix),
        Number::Big(n) => integer_in_parts(n, radix, pause)?,
        Number::Ratio(r) => {
            let numerator = integer_in_parts(r.numer(), radix, pause)?;
            format!("{numerator}/{}", integer_in_parts(r.denom(), radix, pause)?)
        }
        Number::Real(x) if radix == 10 => {
            let mut text = String::new();
            format_real(&mut text, *x);
            text
        }
        Number::Real(x) => real_in_radix(*x, radix),
    })
}

fn integer_in_parts(n: &BigInt, radix: u32, pause: Pause<'_>) -> Result<String> {
    let digits = bignum::text(n.magnitude(), radix, pause)?;
    Ok(if n.is_negative() { format!("-{digits}") } else { digits })
}

/// Radices in which complex numbers have texts: from 19 on, `i` is a digit.
pub const COMPLEX_RADIX_MAX: u32 = 18;

/// The text of any number in `radix`: 2..=36 for real numbers, up to [`COMPLEX_RADIX_MAX`] for
/// others. Empty if `value` is not a number.
///
/// # Panics
/// `radix` is outside 2..=36.
#[must_use]
pub fn text_of(value: Value, radix: u32) -> String {
    // The pause never fails, so there is a result.
    text_in_parts(value, radix, &mut || Ok(())).unwrap_or_default()
}

/// As [`text_of`], in slices.
///
/// # Errors
/// As `pause`.
///
/// # Panics
/// As [`text_of`].
pub fn text_in_parts(value: Value, radix: u32, pause: Pause<'_>) -> Result<String> {
    if !is_complex(value) {
        let number = Number::of(value);
        return number.map_or_else(|| Ok(String::new()), |n| real_in_parts(&n, radix, pause));
    }
    let (real, imaginary) = parts(value);
    let mut text = String::new();
    if real != Value::fixnum(0) {
        text.push_str(&text_in_parts(real, radix, pause)?);
    }
    match imaginary.as_fixnum() {
        Some(1) => text.push('+'),
        Some(-1) => text.push('-'),
        _ => {
            let digits = text_in_parts(imaginary, radix, pause)?;
            if !digits.starts_with(['+', '-']) {
                text.push('+');
            }
            text.push_str(&digits);
        }
    }
    text.push('i');
    Ok(text)
}

/// Appends the shortest decimal text that reads back as `x`.
pub fn format_real(out: &mut String, x: f64) {
    if let Some(name) = special(x) {
        out.push_str(name);
        return;
    }
    // "{:e}" yields the shortest digits that read back: d[.ddd]e[-]x.
    let scientific = format!("{:e}", x.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if x.is_sign_negative() {
        out.push('-');
    }
    if (EXPONENT_LOW + 1..EXPONENT_HIGH).contains(&exponent) {
        push_plain(out, &digits, exponent);
    } else {
        out.push_str(mantissa);
        // Writing to a string cannot fail.
        let _ = write!(out, "e{exponent}");
    }
}

fn special(x: f64) -> Option<&'static str> {
    if x.is_nan() {
        Some("+nan.0")
    } else if x == f64::INFINITY {
        Some("+inf.0")
    } else if x == f64::NEG_INFINITY {
        Some("-inf.0")
    } else {
        None
    }
}

/// Appends `digits` with a decimal point after the digit of weight 10^0. The first digit has weight
/// 10^exponent.
fn push_plain(out: &mut String, digits: &str, exponent: i32) {
    if exponent < 0 {
        out.push_str("0.");
        out.extend(core::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        out.push_str(digits);
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(digits);
        out.extend(core::iter::repeat_n('0', whole - digits.len()));
        out.push_str(".0");
    } else {
        out.push_str(&digits[..whole]);
        out.push('.');
        out.push_str(&digits[whole..]);
    }
}

fn word_to_text(n: i64, radix: u32) -> String {
    let mut digits = Vec::new();
    let mut rest = n.unsigned_abs();
    loop {
        digits.push(digit((rest % u64::from(radix)) as u32, radix));
        rest /= u64::from(radix);
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        digits.push('-');
    }
    digits.iter().rev().collect()
}

/// The text of a flonum in a radix other than ten: exact in even radices, truncated in odd ones.
fn real_in_radix(x: f64, radix: u32) -> String {
    if let Some(name) = special(x) {
        return name.to_owned();
    }
    let whole = Number::Real(x.abs().trunc()).into_ratio().map(|r| r.to_integer());
    let mut text = String::new();
    if x.is_sign_negative() {
        text.push('-');
    }
    text.push_str(&whole.unwrap_or_default().to_str_radix(radix));
    text.push('.');
    // Multiplying a float below one by the radix, and removing the integer part, is exact only for
    // small even radices. Ratios are exact in all.
    let mut fraction = Number::Real(x.abs().fract()).into_ratio().unwrap_or_default();
    let limit = if radix.is_multiple_of(2) { usize::MAX } else { FRACTION_DIGITS_MAX };
    let radix_ratio = num_rational::BigRational::from_integer(radix.into());
    let mut count = 0;
    loop {
        fraction *= &radix_ratio;
        let whole = fraction.trunc();
        let value = num_traits::ToPrimitive::to_u32(whole.numer()).unwrap_or(0);
        text.push(digit(value, radix));
        fraction -= whole;
        count += 1;
        if num_traits::Zero::is_zero(&fraction) || count == limit {
            return text;
        }
    }
}

fn digit(value: u32, radix: u32) -> char {
    char::from_digit(value, radix).unwrap_or('0')
}
