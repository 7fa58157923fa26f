//! Checks that code keeps what the machine takes for granted: every slot lies in the frame, every
//! jump meets the beginning of an instruction, every literal is one. Runs in debug builds, where
//! every test goes through it.

use crate::compiler::code::{Code, PROLOGUE_WORDS, STUB_RETURN};
use crate::compiler::instruction::{Instruction, Opcode, Role};

/// # Panics
/// When the code breaks an invariant: the compiler is wrong.
pub(super) fn verify(code: &Code) {
    let end = code.instructions_end;
    let mut starts = vec![false; end];
    let mut at = PROLOGUE_WORDS;
    while at < end {
        starts[at] = true;
        at += Instruction(code.words[at]).length();
    }
    assert!(at == end, "the last instruction ends with the code: {code:?}");
    assert!(Instruction(code.words[STUB_RETURN]).opcode() == Some(Opcode::Raised), "{code:?}");
    for entry in &code.entries {
        assert!(starts[entry.at], "an entry is an instruction: {code:?}");
    }
    for at in (PROLOGUE_WORDS..end).filter(|&at| starts[at]) {
        let instruction = Instruction(code.words[at]);
        let Some(opcode) = instruction.opcode() else { panic!("no opcode at {at}: {code:?}") };
        let shape = opcode.shape();
        for (role, field) in
            [(shape.a, instruction.a()), (shape.b, instruction.b()), (shape.c, instruction.c())]
        {
            let good = match role {
                Role::Read | Role::Write => usize::from(field) < code.frame_slots,
                Role::Base => usize::from(field) + calls(instruction, opcode) <= code.frame_slots,
                _ => true,
            };
            assert!(good, "slot {field} of {instruction:?} at {at} is outside the frame: {code:?}");
        }
        let target = |offset: i64| usize::try_from(at as i64 + offset).unwrap_or(usize::MAX);
        match (shape.b, shape.c) {
            (Role::Far, _) => {
                assert!(is_start(&starts, target(instruction.bc().into())), "{code:?}");
            }
            (_, Role::Near) => {
                assert!(is_start(&starts, target(instruction.c_signed().into())), "{code:?}");
            }
            (Role::Literal, _) => {
                let literal = target(instruction.bc().into());
                let own = matches!(
                    opcode,
                    Opcode::CallSelf | Opcode::CallSelfGlobal | Opcode::TailCallSelfGlobal
                );
                assert!(literal < code.words.len() && (own || literal >= end), "{code:?}");
            }
            _ => {}
        }
    }
}

fn is_start(starts: &[bool], target: usize) -> bool {
    starts.get(target) == Some(&true)
}

/// Slots that a call takes from its base on.
fn calls(instruction: Instruction, opcode: Opcode) -> usize {
    match opcode {
        Opcode::PrimitiveN | Opcode::RecordNew => usize::from(instruction.c()),
        Opcode::Call | Opcode::TailCall => usize::from(instruction.b()) + 2,
        _ => usize::from(instruction.x()) + 2,
    }
}
