//! The words of code that are addresses. An image contains what they refer to; all other words are
//! saved as they are.
//!
//! ```text
//!   CallGlobal ..   literal           ──> a location
//!   MakeClosure ..  literal, literal  ──> code, one of its entries
//!   LoadLiteral ..  literal           ──> a value
//!   Car ..          word behind it    ──> a primitive
//! ```

use super::ImageError;
use kyocho_heap::value::Value;
use kyocho_vm::compiler::code::{Code, PROLOGUE_WORDS};
use kyocho_vm::compiler::instruction::{Instruction, Opcode};

/// The target of a word of code that is an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A value, usually an object.
    Value(Value),
    /// The location at this address.
    Global(usize),
    /// The primitive at this address.
    Primitive(u64),
    /// An entry of that code.
    Entry(Value, usize),
}

/// The words that are addresses, by position, each once.
pub(super) fn targets(code: &Code) -> Result<Vec<(usize, Target)>, ImageError> {
    let mut targets = Vec::new();
    let global = code.words[PROLOGUE_WORDS - 1];
    if global != 0 {
        targets.push((PROLOGUE_WORDS - 1, Target::Global(global as usize)));
    }
    let mut at = PROLOGUE_WORDS;
    while at < code.instructions_end {
        let instruction = Instruction(code.words[at]);
        targets.extend(of_instruction(code, at, instruction)?);
        at += instruction.length();
    }
    targets.sort_by_key(|&(at, _)| at);
    targets.dedup();
    if targets.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(ImageError::Damaged("a literal that is two things"));
    }
    Ok(targets)
}

fn of_instruction(
    code: &Code,
    at: usize,
    instruction: Instruction,
) -> Result<Vec<(usize, Target)>, ImageError> {
    let opcode =
        instruction.opcode().ok_or(ImageError::Damaged("a word that is no instruction"))?;
    let literal = |offset: i32| at.wrapping_add_signed(offset as isize);
    let value = |at: usize| Value::from_word(code.words[at]);
    let near = literal(instruction.bc());
    Ok(match opcode {
        Opcode::LoadLiteral => vec![(near, Target::Value(value(near)))],
        Opcode::LoadGlobal
        | Opcode::SetGlobal
        | Opcode::DefineGlobal
        | Opcode::CallGlobal
        | Opcode::TailCallGlobal => vec![(near, Target::Global(code.words[near] as usize))],
        Opcode::MakeClosure => {
            let first = literal(Instruction(code.words[at + 1]).bc());
            let inner = value(first);
            let entry = inner
                .as_foreign::<Code>()
                .and_then(|inner| inner.position(code.words[first + 1]))
                .ok_or(ImageError::Damaged("a closure without code"))?;
            vec![(first, Target::Value(inner)), (first + 1, Target::Entry(inner, entry))]
        }
        Opcode::CellRefChecked => vec![(at + 1, Target::Value(value(at + 1)))],
        other if other.shape().words == 2 => {
            vec![(at + 1, Target::Primitive(code.words[at + 1]))]
        }
        _ => Vec::new(),
    })
}
