//! The verifier: checks what the machine relies on. Every slot is in the frame, every jump targets
//! the beginning of an instruction, every literal offset refers to a literal. All code must pass
//! before the machine can enter it: generated code, in every build, and code from images.

use crate::compiler::code::{Code, PROLOGUE_WORDS, STUB_RETURN};
use crate::compiler::instruction::{Instruction, Opcode, Role};

/// A violation that would make the code unsafe to run.
#[derive(Debug)]
pub struct Fault {
    /// The position in the code.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

fn ensure(holds: bool, at: usize, what: &'static str) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault { at, what }) }
}

/// Checks the code.
///
/// # Errors
/// The first invariant that the code breaks.
pub fn verify(code: &Code) -> Result<(), Fault> {
    let end = code.instructions_end;
    // Code without a clause has no instructions either, because it is never entered.
    let least = PROLOGUE_WORDS + usize::from(!code.entries.is_empty());
    ensure((least..=code.words.len()).contains(&end), end, "the end is outside the code")?;
    let mut starts = vec![false; end];
    let mut at = PROLOGUE_WORDS;
    while at < end {
        starts[at] = true;
        at += Instruction(code.words[at]).length();
    }
    ensure(at == end, at, "the last instruction does not end with the code")?;
    let stub = Instruction(code.words[STUB_RETURN]).opcode();
    ensure(stub == Some(Opcode::Raised), STUB_RETURN, "there is no stub")?;
    for entry in &code.entries {
        ensure(is_start(&starts, entry.at), entry.at, "an entry is no instruction")?;
    }
    (PROLOGUE_WORDS..end).filter(|&at| starts[at]).try_for_each(|at| verify_at(code, &starts, at))
}

fn verify_at(code: &Code, starts: &[bool], at: usize) -> Result<(), Fault> {
    let instruction = Instruction(code.words[at]);
    let opcode = instruction.opcode().ok_or(Fault { at, what: "no such instruction" })?;
    let shape = opcode.shape();
    for (role, field) in
        [(shape.a, instruction.a()), (shape.b, instruction.b()), (shape.c, instruction.c())]
    {
        let good = match role {
            Role::Read | Role::Write => usize::from(field) < code.frame_slots,
            Role::Base => usize::from(field) + calls(instruction, opcode) <= code.frame_slots,
            _ => true,
        };
        ensure(good, at, "a slot outside the frame")?;
    }
    let target = |offset: i64| usize::try_from(at as i64 + offset).unwrap_or(usize::MAX);
    match (shape.b, shape.c) {
        (Role::Far, _) => {
            let meets = is_start(starts, target(instruction.bc().into()));
            ensure(meets, at, "a jump to no instruction")
        }
        (_, Role::Near) => {
            let meets = is_start(starts, target(instruction.c_signed().into()));
            ensure(meets, at, "a jump to no instruction")
        }
        (Role::Literal, _) => {
            let literal = target(instruction.bc().into());
            let own = matches!(
                opcode,
                Opcode::CallSelf | Opcode::CallSelfGlobal | Opcode::TailCallSelfGlobal
            );
            let is_one = literal < code.words.len() && (own || literal >= starts.len());
            ensure(is_one, at, "a literal that is none")
        }
        _ => Ok(()),
    }
}

fn is_start(starts: &[bool], target: usize) -> bool {
    starts.get(target) == Some(&true)
}

/// Slots that a call uses, counted from its base.
fn calls(instruction: Instruction, opcode: Opcode) -> usize {
    match opcode {
        Opcode::PrimitiveN | Opcode::RecordNew => usize::from(instruction.c()),
        Opcode::Call | Opcode::TailCall => usize::from(instruction.b()) + 2,
        _ => usize::from(instruction.x()) + 2,
    }
}
