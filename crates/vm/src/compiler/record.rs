//! The procedures of a record type, assembled from instructions. Their only free variable is the
//! type.

use crate::compiler::assembler::Assembler;
use crate::compiler::code::{
    ARITY_FIXED_MAX, Code, Entry, HEADROOM_SLOTS, PROLOGUE_WORDS, RAISE_SLOTS,
};
use crate::compiler::instruction::{Instruction, Opcode};
use crate::compiler::make_code;
use kyocho_heap::heap::{Kind, Mutator};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Span;
use kyocho_syntax::symbol::Symbol;

/// Maximum number of fields of a record type. A constructor's arity must fit a closure flag.
const FIELDS_MAX: usize = ARITY_FIXED_MAX;

fn begin() -> Assembler {
    let mut asm = Assembler::default();
    asm.wide(Opcode::Raised, 0, 0, 0);
    asm.op(Opcode::Raised, 0, 0, 0);
    asm.operand(0);
    asm
}

/// A closure over the type with `required` arguments.
fn finish(
    mutator: &mut Mutator,
    mut asm: Assembler,
    record_type: Value,
    name: Symbol,
    required: usize,
    frame_slots: usize,
) -> Result {
    let (mut words, end) =
        asm.finish().map_err(|_| Raise::error("a record type too large", Vec::new()))?;
    words[0] = Instruction::wide(Opcode::Raised, 0, frame_slots as u16 + 1, 0).0;
    let code = Code {
        words: words.into_boxed_slice(),
        instructions_end: end,
        name: Some(name),
        entries: Box::new([Entry { required, rest: false, at: PROLOGUE_WORDS }]),
        frame_slots,
        constants: Box::new([]),
        globals: Box::new([]),
        spans: Box::new([]),
        locals: Box::new([]),
    };
    let (flag, entry) = (code.arity_flag(), code.address_of(PROLOGUE_WORDS));
    let code = make_code(mutator, code).map_err(|error| error.into_raise(Span::default()))?;
    let closure = mutator.object(Kind::Closure, flag, 3)?;
    closure.set_payload_word(0, code.to_word());
    closure.set_payload_word(1, entry);
    closure.set_payload_word(2, record_type.to_word());
    Ok(closure)
}

fn type_name(record_type: Value) -> &'static str {
    record_type.field(0).and_then(Value::as_symbol).map_or("record", Symbol::name)
}

fn field_name(record_type: Value, index: u16) -> &'static str {
    let mut fields = record_type.field(1).unwrap_or(Value::NIL);
    for _ in 0..index {
        fields = fields.cdr().unwrap_or(Value::NIL);
    }
    fields.car().and_then(Value::as_symbol).map_or("field", Symbol::name)
}

fn field_count(record_type: Value) -> usize {
    let mut fields = record_type.field(1).unwrap_or(Value::NIL);
    let mut count = 0;
    while let Some(rest) = fields.cdr() {
        count += 1;
        fields = rest;
    }
    count
}

/// A constructor that takes the fields with these indices, in this order.
pub(crate) fn constructor(mutator: &mut Mutator, record_type: Value, indices: Value) -> Result {
    let count = field_count(record_type);
    if count > FIELDS_MAX {
        let message = format!("a record type has at most {FIELDS_MAX} fields");
        return Err(Raise::error(message, vec![record_type]));
    }
    let mut asm = begin();
    let mut fields = indices;
    let mut given = vec![None; count];
    let mut required = 0;
    while let Some((index, rest)) = fields.uncons() {
        if let Some(slot) = index.as_fixnum().and_then(|index| given.get_mut(index as usize)) {
            *slot = Some(required as u16);
        }
        required += 1;
        fields = rest;
    }
    let in_order = given.iter().enumerate().all(|(i, from)| *from == Some(i as u16));
    let first = if in_order { 0 } else { required as u16 };
    let slots = required.max(usize::from(first) + count.max(1));
    if slots + RAISE_SLOTS > HEADROOM_SLOTS {
        asm.wide(Opcode::Reserve, 0, 0, slots as i32);
    }
    if !in_order {
        for (i, from) in given.iter().enumerate() {
            match from {
                Some(from) => asm.op(Opcode::Move, first + i as u16, *from, 0),
                None => {
                    let word = Value::FALSE.to_word() as i32;
                    asm.wide(Opcode::LoadWord, 0, first + i as u16, word);
                }
            }
        }
    }
    asm.op(Opcode::RecordNew, first, first, count as u16);
    asm.op(Opcode::Return, first, 0, 0);
    let name = Symbol::intern(&format!("make-{}", type_name(record_type)));
    finish(mutator, asm, record_type, name, required, slots)
}

/// The predicate.
pub(crate) fn predicate(mutator: &mut Mutator, record_type: Value) -> Result {
    let mut asm = begin();
    asm.op(Opcode::RecordIs, 0, 0, 0);
    asm.op(Opcode::Return, 0, 0, 0);
    let name = Symbol::intern(&format!("{}?", type_name(record_type)));
    finish(mutator, asm, record_type, name, 1, 1)
}

/// The accessor of a field.
pub(crate) fn accessor(mutator: &mut Mutator, record_type: Value, index: u16) -> Result {
    let mut asm = begin();
    asm.op(Opcode::RecordRef, 0, 0, index);
    asm.op(Opcode::Return, 0, 0, 0);
    let field = field_name(record_type, index);
    let name = Symbol::intern(&format!("{}-{field}", type_name(record_type)));
    finish(mutator, asm, record_type, name, 1, 1)
}

/// The modifier of a field.
pub(crate) fn modifier(mutator: &mut Mutator, record_type: Value, index: u16) -> Result {
    let mut asm = begin();
    asm.op(Opcode::RecordSet, 0, 1, index);
    asm.wide(Opcode::ReturnWord, 0, 0, Value::UNSPECIFIED.to_word() as i32);
    let field = field_name(record_type, index);
    let name = Symbol::intern(&format!("set-{}-{field}!", type_name(record_type)));
    finish(mutator, asm, record_type, name, 2, 2)
}
