//! Characters: classes, case, comparison, digits.

use super::Primitive;
use super::call::Call;
use core::cmp::Ordering;
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::Result;
use kyocho_heap::text::fold::{downcase, foldcase, upcase};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("char?", 1, |_, a| Ok(Value::boolean(a[0].as_character().is_some()))),
    Primitive::exactly("char->integer", 1, |_, a| {
        let c = Call::new("char->integer", a).character(0)?;
        Ok(Value::fixnum(i64::from(u32::from(c))))
    }),
    Primitive::exactly("integer->char", 1, integer_to_char),
    Primitive::exactly("char-upcase", 1, |_, a| mapped("char-upcase", a, upcase)),
    Primitive::exactly("char-downcase", 1, |_, a| mapped("char-downcase", a, downcase)),
    Primitive::exactly("char-foldcase", 1, |_, a| mapped("char-foldcase", a, foldcase)),
    Primitive::exactly("char-alphabetic?", 1, |_, a| {
        class("char-alphabetic?", a, char::is_alphabetic)
    }),
    Primitive::exactly("char-numeric?", 1, |_, a| {
        class("char-numeric?", a, |c| digit_value(c).is_some())
    }),
    Primitive::exactly("char-whitespace?", 1, |_, a| {
        class("char-whitespace?", a, char::is_whitespace)
    }),
    Primitive::exactly("char-upper-case?", 1, |_, a| {
        class("char-upper-case?", a, char::is_uppercase)
    }),
    Primitive::exactly("char-lower-case?", 1, |_, a| {
        class("char-lower-case?", a, char::is_lowercase)
    }),
    Primitive::exactly("digit-value", 1, |_, a| {
        let c = Call::new("digit-value", a).character(0)?;
        Ok(digit_value(c).map_or(Value::FALSE, |n| Value::fixnum(i64::from(n))))
    }),
    Primitive::between("char->digit", 1, 2, char_to_digit),
    Primitive::between("digit->char", 1, 2, digit_to_char),
    Primitive::at_least("char=?", 1, |_, a| chain("char=?", a, same, |o| o == Ordering::Equal)),
    Primitive::at_least("char<?", 1, |_, a| chain("char<?", a, same, |o| o == Ordering::Less)),
    Primitive::at_least("char>?", 1, |_, a| chain("char>?", a, same, |o| o == Ordering::Greater)),
    Primitive::at_least("char<=?", 1, |_, a| chain("char<=?", a, same, |o| o != Ordering::Greater)),
    Primitive::at_least("char>=?", 1, |_, a| chain("char>=?", a, same, |o| o != Ordering::Less)),
    Primitive::at_least("char-ci=?", 1, |_, a| {
        chain("char-ci=?", a, foldcase, |o| o == Ordering::Equal)
    }),
    Primitive::at_least("char-ci<?", 1, |_, a| {
        chain("char-ci<?", a, foldcase, |o| o == Ordering::Less)
    }),
    Primitive::at_least("char-ci>?", 1, |_, a| {
        chain("char-ci>?", a, foldcase, |o| o == Ordering::Greater)
    }),
    Primitive::at_least("char-ci<=?", 1, |_, a| {
        chain("char-ci<=?", a, foldcase, |o| o != Ordering::Greater)
    }),
    Primitive::at_least("char-ci>=?", 1, |_, a| {
        chain("char-ci>=?", a, foldcase, |o| o != Ordering::Less)
    }),
];

/// The zero of each sequence of ten decimal digits (Unicode's Nd), in order. From `UnicodeData.txt`
/// 16.0.
const ZEROS: &[u32] = &[
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
    0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x10d30, 0x10d40, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0,
    0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730, 0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50,
    0x11da0, 0x11f50, 0x16130, 0x16a60, 0x16ac0, 0x16b50, 0x16d70, 0x1ccf0, 0x1d7ce, 0x1d7d8,
    0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e5f1, 0x1e950, 0x1fbf0,
];

/// The value of a decimal digit of any script.
fn digit_value(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    let code = u32::from(c);
    let run = ZEROS.partition_point(|&zero| zero <= code);
    let value = code - ZEROS[run - 1];
    (value < 10).then_some(value)
}

fn same(c: char) -> char {
    c
}

fn mapped(who: &'static str, arguments: &[Value], map: fn(char) -> char) -> Result {
    let c = Call::new(who, arguments).character(0)?;
    Ok(Value::character(map(c)))
}

fn class(who: &'static str, arguments: &[Value], test: fn(char) -> bool) -> Result {
    let c = Call::new(who, arguments).character(0)?;
    Ok(Value::boolean(test(c)))
}

fn integer_to_char(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("integer->char", arguments);
    let code = call.fixnum(0)?;
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .map(Value::character)
        .ok_or_else(|| call.outside(0, "0..#xD7FF or #xE000..#x10FFFF"))
}

fn radix(call: Call<'_>) -> Result<u32> {
    match call.optional(1).map(|_| call.fixnum(1)).transpose()? {
        None => Ok(10),
        Some(n @ 2..=36) => Ok(n as u32),
        Some(_) => Err(call.outside(1, "2 <= radix <= 36")),
    }
}

fn char_to_digit(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("char->digit", arguments);
    let digit = call.character(0)?.to_digit(radix(call)?);
    Ok(digit.map_or(Value::FALSE, |n| Value::fixnum(i64::from(n))))
}

fn digit_to_char(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("digit->char", arguments);
    let (n, radix) = (call.count_at(0)?, radix(call)?);
    let digit = u32::try_from(n).ok().and_then(|n| char::from_digit(n, radix));
    Ok(digit.map_or(Value::FALSE, Value::character))
}

fn chain(
    who: &'static str,
    arguments: &[Value],
    key: fn(char) -> char,
    holds: fn(Ordering) -> bool,
) -> Result {
    let call = Call::new(who, arguments);
    let mut result = true;
    let mut previous = key(call.character(0)?);
    for i in 1..arguments.len() {
        let next = key(call.character(i)?);
        result &= holds(previous.cmp(&next));
        previous = next;
    }
    Ok(Value::boolean(result))
}
