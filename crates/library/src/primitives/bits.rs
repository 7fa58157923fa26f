//! Bits of exact integers, in two's complement of unlimited length (names of SRFI 151 and SRFI 60).

use super::Primitive;
use super::call::Call;
use core::ops::{BitAnd, BitOr, BitXor, Not};
use kyocho_heap::heap::Mutator;
use kyocho_heap::number::{check_bits, store_big};
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use num_bigint::BigInt;
use num_traits::Signed;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::at_least("bitwise-and", 0, |m, a| {
        fold(m, "bitwise-and", a, -1, (i64::bitand, BigInt::bitand))
    }),
    Primitive::at_least("bitwise-ior", 0, |m, a| {
        fold(m, "bitwise-ior", a, 0, (i64::bitor, BigInt::bitor))
    }),
    Primitive::at_least("bitwise-or", 0, |m, a| {
        fold(m, "bitwise-or", a, 0, (i64::bitor, BigInt::bitor))
    }),
    Primitive::at_least("bitwise-xor", 0, |m, a| {
        fold(m, "bitwise-xor", a, 0, (i64::bitxor, BigInt::bitxor))
    }),
    Primitive::exactly("bitwise-not", 1, complement),
    Primitive::exactly("arithmetic-shift", 2, |m, a| shift(m, "arithmetic-shift", a)),
    Primitive::exactly("ash", 2, |m, a| shift(m, "ash", a)),
    Primitive::exactly("bit-count", 1, bit_count),
    Primitive::exactly("integer-length", 1, integer_length),
    Primitive::exactly("bit-set?", 2, is_bit_set),
];

fn big(call: Call<'_>, i: usize) -> Result<BigInt> {
    let number = call.number(i).ok().and_then(kyocho_heap::number::Number::into_big);
    number.ok_or_else(|| call.wrong(i, "exact integer"))
}

type Words = fn(i64, i64) -> i64;
type Bigs = fn(BigInt, BigInt) -> BigInt;

fn fold(
    m: &mut Mutator,
    who: &'static str,
    arguments: &[Value],
    unit: i64,
    (word, wide): (Words, Bigs),
) -> Result {
    let call = Call::new(who, arguments);
    let mut words = unit;
    for (i, argument) in arguments.iter().enumerate() {
        let Some(n) = argument.as_fixnum() else {
            let mut result = BigInt::from(words);
            for i in i..arguments.len() {
                result = wide(result, big(call, i)?);
            }
            return store_big(m, &result);
        };
        words = word(words, n);
    }
    Ok(Value::fixnum(words))
}

fn complement(m: &mut Mutator, arguments: &[Value]) -> Result {
    match arguments[0].as_fixnum() {
        Some(n) => Ok(Value::fixnum(!n)),
        None => store_big(m, &big(Call::new("bitwise-not", arguments), 0)?.not()),
    }
}

fn shift(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let call = Call::new(who, arguments);
    let count = call.fixnum(1)?;
    if let (Some(n), -63..=0) = (arguments[0].as_fixnum(), count) {
        return Ok(Value::fixnum(n >> count.unsigned_abs()));
    }
    let n = big(call, 0)?;
    let distance = count.unsigned_abs();
    if count <= 0 {
        // Beyond the number's length only the sign remains.
        return store_big(m, &(n.clone() >> distance.min(n.bits() + 1)));
    }
    if n.bits() == 0 {
        return Ok(Value::fixnum(0));
    }
    check_bits(n.bits().saturating_add(distance))?;
    store_big(m, &(n << distance))
}

/// The number of one bits of a non-negative integer, or of zero bits of a negative one.
fn bit_count(_: &mut Mutator, arguments: &[Value]) -> Result {
    let n = big(Call::new("bit-count", arguments), 0)?;
    let n = if n.is_negative() { n.not() } else { n };
    Ok(Value::fixnum(n.magnitude().count_ones() as i64))
}

fn integer_length(_: &mut Mutator, arguments: &[Value]) -> Result {
    let n = big(Call::new("integer-length", arguments), 0)?;
    let n = if n.is_negative() { n.not() } else { n };
    Ok(Value::fixnum(n.bits() as i64))
}

fn is_bit_set(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("bit-set?", arguments);
    let i = call.count_at(0)? as u64;
    let n = big(call, 1)?;
    let i = i.min(n.bits() + 1);
    Ok(Value::boolean(n.bit(i)))
}
