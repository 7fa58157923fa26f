//! `eq?`, `eqv?`, `equal?`, hashes, and predicates that belong to no single type.

use super::Primitive;
use super::call::Call;
use kyocho_heap::equality::{equal_hash, equal_in_parts, eqv, eqv_hash, text_hash};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::text::fold;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("eq?", 2, |_, a| Ok(Value::boolean(a[0] == a[1]))),
    Primitive::exactly("eqv?", 2, |_, a| Ok(Value::boolean(eqv(a[0], a[1])))),
    Primitive::exactly("equal?", 2, |m, a| Ok(Value::boolean(equal_in_parts(m, a[0], a[1])?))),
    Primitive::between("eq-hash", 1, 2, |_, a| hash("eq-hash", a, eqv_hash(a[0]))),
    Primitive::between("hash-by-identity", 1, 2, |_, a| {
        hash("hash-by-identity", a, eqv_hash(a[0]))
    }),
    Primitive::between("eqv-hash", 1, 2, |_, a| hash("eqv-hash", a, eqv_hash(a[0]))),
    Primitive::between("equal-hash", 1, 2, |_, a| hash("equal-hash", a, equal_hash(a[0]))),
    Primitive::between("hash", 1, 2, |_, a| hash("hash", a, equal_hash(a[0]))),
    Primitive::between("string-hash", 1, 2, string_hash),
    Primitive::between("string-ci-hash", 1, 2, string_ci_hash),
    Primitive::between("symbol-hash", 1, 2, |_, a| {
        Call::new("symbol-hash", a).symbol(0)?;
        hash("symbol-hash", a, eqv_hash(a[0]))
    }),
    Primitive::between("char-hash", 1, 2, |_, a| {
        Call::new("char-hash", a).character(0)?;
        hash("char-hash", a, eqv_hash(a[0]))
    }),
    Primitive::between("number-hash", 1, 2, |_, a| {
        Call::new("number-hash", a).number(0)?;
        hash("number-hash", a, eqv_hash(a[0]))
    }),
    Primitive::exactly("%wrong-type", 4, wrong_type),
    Primitive::exactly("eof-object", 0, |_, _| Ok(Value::EOF)),
    Primitive::exactly("eof-object?", 1, |_, a| Ok(Value::boolean(a[0] == Value::EOF))),
    Primitive::at_least("void", 0, |_, _| Ok(Value::UNSPECIFIED)),
];

/// Bits of hash values: `hash-bound` of SRFI 128. Their products with small numbers are still
/// fixnums.
const HASH_BITS: u32 = 48;

/// A hash as a non-negative fixnum, below argument 1 if it was passed.
fn hash(who: &'static str, arguments: &[Value], hash: u64) -> Result {
    let call = Call::new(who, arguments);
    let hash = (hash >> (u64::BITS - HASH_BITS)) as i64;
    let Some(bound) = call.optional(1) else { return Ok(Value::fixnum(hash)) };
    match bound.as_fixnum() {
        Some(bound) if bound > 0 => Ok(Value::fixnum(hash % bound)),
        _ => Err(call.wrong(1, "exact positive integer")),
    }
}

/// `(%wrong-type who position expected got)`: raises the primitives' error for a wrong type, from
/// the prelude.
fn wrong_type(_: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("%wrong-type", arguments);
    let who = call.symbol(0)?.name();
    let position = call.count_at(1)?;
    // Interned, because the error needs a text that lives long enough. The prelude uses only a few.
    let expected = Symbol::intern(&call.string(2)?).name();
    Err(Raise::wrong_type(who, position, expected, arguments[3]))
}

fn string_hash(_: &mut Mutator, arguments: &[Value]) -> Result {
    let text = Call::new("string-hash", arguments).text(0)?;
    hash("string-hash", arguments, text_hash(text))
}

fn string_ci_hash(m: &mut Mutator, arguments: &[Value]) -> Result {
    let text = Call::new("string-ci-hash", arguments).string(0)?;
    let folded = m.string(&fold::folded(&text))?;
    hash("string-ci-hash", arguments, equal_hash(folded))
}
