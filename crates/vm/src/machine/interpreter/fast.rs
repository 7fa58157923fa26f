//! The fast paths of instructions: fixnums, flonums, vectors, records, closures.
//!
//! Each function is inlined into the machine's loop.

use crate::compiler::assembler::SOURCE_FREE;
use crate::compiler::code::ARITY_GENERAL;
use crate::compiler::instruction::Instruction;
use crate::machine::access::{Frame, Pc};
use kyocho_heap::heap::Kind;
use kyocho_heap::heap::object::Header;
use kyocho_heap::value::Value;

/// The bits of a header that encode a closure with a given number of arguments.
const CLOSURE: u64 = Kind::Closure as u64;
const ARITY_SHIFT: u32 = 8;
const HEADER_LOW: u64 = 0xffff;
const FIXNUM_MASK: u64 = 0b111;
/// The position of the number within the word of a fixnum.
pub(super) const FIXNUM_SHIFT: u32 = 3;

/// Whether both are fixnums.
#[inline(always)]
pub(super) fn both_fixnums(a: Value, b: Value) -> bool {
    (a.to_word() | b.to_word()) & FIXNUM_MASK == 0
}

/// The operands of a comparison as flonums, if that does not change the result: a fixnum among them
/// must be exact as a flonum.
#[inline(always)]
pub(super) fn comparable(a: Value, b: Value) -> Option<(f64, f64)> {
    const EXACT_MAX: u64 = 1 << 53;
    let exact = |n: i64| (n.unsigned_abs() <= EXACT_MAX).then_some(n as f64);
    match (a.as_flonum(), b.as_flonum()) {
        (Some(x), Some(y)) => Some((x, y)),
        (Some(x), None) => Some((x, exact(b.as_fixnum()?)?)),
        (None, Some(y)) => Some((exact(a.as_fixnum()?)?, y)),
        (None, None) => None,
    }
}

/// Whether `callee` is a closure with exactly this number of arguments. A count equal to
/// `ARITY_GENERAL` is left to `enter`, which checks the clauses.
#[inline(always)]
pub(super) fn is_closure_of(callee: Value, count: u64) -> bool {
    callee.is_object()
        && Header::at(callee.address()).to_word() & HEADER_LOW == (CLOSURE | count << ARITY_SHIFT)
        && count != u64::from(ARITY_GENERAL)
}

/// The first instruction of a closure that has one clause.
#[inline(always)]
pub(super) fn entry(closure: Value) -> Pc {
    Pc::from_word(closure.field_at(1).to_word())
}

/// The value of a number that is part of an instruction.
#[inline(always)]
pub(super) fn small(n: i16) -> Value {
    Value::fixnum(i64::from(n))
}

/// Fills a new closure: its code, its entry, and its free variables, which follow the instruction.
#[inline(always)]
pub(super) fn fill_closure(pc: Pc, frame: Frame, closure: Value, free: usize) {
    let code = Instruction(pc.word(1)).bc();
    closure.set_field_at(0, Value::from_word(pc.word(code)));
    closure.set_field_at(1, Value::from_word(pc.word(code + 1)));
    let own = frame.callee();
    for index in 0..free {
        let source = (pc.word(2 + (index / 4) as i32) >> (16 * (index % 4))) as u16;
        let value = if source & SOURCE_FREE == 0 {
            frame.get(source)
        } else {
            own.field_at(usize::from(source & !SOURCE_FREE) + 2)
        };
        closure.set_field_at(index + 2, value);
    }
}

/// An element of a vector. `None` if the operands are wrong.
#[inline(always)]
pub(super) fn element(vector: Value, index: Value) -> Option<Value> {
    if !index.is_fixnum() {
        return None;
    }
    vector.vector_ref((index.to_word() >> FIXNUM_SHIFT) as usize)
}

/// Sets an element of a vector. Returns `false` if the operands are wrong.
#[inline(always)]
pub(super) fn set_element(vector: Value, index: Value, value: Value) -> bool {
    index.is_fixnum() && vector.vector_set((index.to_word() >> FIXNUM_SHIFT) as usize, value)
}

/// Whether `value` is a record of this type.
#[inline(always)]
pub(super) fn is_record(value: Value, record_type: Value) -> bool {
    value.is_kind(Kind::Record) && value.field_at(0) == record_type
}

/// The quotient of two fixnums. `None` if one is not a fixnum, `b` is 0, or the result is not a
/// fixnum.
#[inline(always)]
pub(super) fn quotient(a: Value, b: Value) -> Option<Value> {
    Value::fixnum_checked(a.as_fixnum()?.checked_div(b.as_fixnum()?)?)
}

/// The remainder of two fixnums. `None` if one is not a fixnum, or `b` is 0.
#[inline(always)]
pub(super) fn remainder(a: Value, b: Value) -> Option<Value> {
    Some(Value::fixnum(a.as_fixnum()?.checked_rem(b.as_fixnum()?)?))
}

/// As [`remainder`], with the sign of `b`.
#[inline(always)]
pub(super) fn modulo(a: Value, b: Value) -> Option<Value> {
    let (a, b) = (a.as_fixnum()?, b.as_fixnum()?);
    let rest = a.checked_rem(b)?;
    Some(Value::fixnum(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
}
