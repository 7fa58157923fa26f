//! Resumption after an unhandled exception, for the debugger.
//!
//! ```text
//!  instruction raises -> %raise -> %uncaught     the evaluation ends; its continuation is kept
//!        ^                                            |
//!        `---- stub: `resume` <--- a value, or "again" '
//! ```
//!
//! If an instruction raises, its address is above the frame (`enter.rs`), and a value that the
//! handler returns goes to the frame's stub. If a call raises in place of entering its procedure, a
//! value that the handler returns is the result of that procedure.

use crate::compiler::instruction::{Instruction, Opcode};
use crate::machine::access::{Frame, Pc};
use crate::machine::{Exit, Machine, Next};
use kyocho_heap::value::Value;

/// The state of an evaluation that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Continues the evaluation with a value in place of the failed operation's.
    pub continuation: Value,
    /// The object that was raised.
    pub object: Value,
    /// Whether an instruction raised, so that it can be executed again.
    pub is_at_instruction: bool,
}

/// Passing this value to the continuation executes the failed instruction again.
pub const AGAIN: Value = Value::UNBOUND;

/// Maximum number of words of stack that are kept. A larger stack is not kept at all.
const WORDS_MAX: usize = 1 << 17;

impl Machine {
    /// The state at the failure, after `Exit::Uncaught`. `None` if the stack is too large, or there
    /// is no memory for the state. The machine cannot run any more.
    pub fn keep_failure(&mut self, object: Value) -> Option<Failure> {
        // The machine is in the call of `%uncaught`, which `%raise` has called in tail position.
        let count = self.pending?;
        if self.stack.depth(self.frame) > WORDS_MAX {
            return None;
        }
        let back = Instruction(self.frame.return_pc().word(0)).opcode();
        let is_at_instruction = back == Some(Opcode::Raised);
        let (continuation, frame) = self.capture(self.frame, count).ok()?;
        self.frame = frame;
        Some(Failure { continuation, object, is_at_instruction })
    }

    /// Executes the instruction `Raised`. If a value was returned to the stub of a frame that
    /// raised, continues there; otherwise stops the machine.
    #[cold]
    #[inline(never)]
    pub(super) fn raised(&mut self, pc: Pc, frame: Frame) -> Result<Next, Exit> {
        if let Some(exit) = self.stopped.take() {
            return Err(exit);
        }
        let resumed = if pc == Pc::broken() { None } else { self.resume(frame) };
        resumed.ok_or(Exit::Broken)
    }

    /// `None` if continuing is not possible.
    fn resume(&mut self, frame: Frame) -> Option<Next> {
        let code = self.code_of(frame)?;
        let slots = code.frame_slots as isize;
        let (fault, value) = (Pc::from_word(frame.value(slots).to_word()), frame.value(slots + 1));
        code.position(fault.to_word())?;
        if value == AGAIN {
            return Some(Next { pc: fault, frame });
        }
        let instruction = fault.fetch();
        let opcode = instruction.opcode()?;
        let after = fault.at(instruction.length() as i32);
        match Effect::of(opcode)? {
            Effect::Value => frame.set(instruction.a(), value),
            Effect::Nothing => {}
            Effect::Result => return Some(self.give(frame, value)),
            Effect::Jump { if_true } if value.is_true() == if_true => {
                return Some(Next { pc: fault.at(instruction.c_signed().into()), frame });
            }
            Effect::Jump { .. } => {}
        }
        Some(Next { pc: after, frame })
    }
}

/// How a value is used that a debugger passes in place of an instruction that raised.
enum Effect {
    /// The value is written to the first operand, which may have any type.
    Value,
    /// The value is not needed.
    Nothing,
    /// The value is the procedure's result.
    Result,
    /// The value decides a jump.
    Jump { if_true: bool },
}

impl Effect {
    /// `None` for instructions that never raise, whose results other instructions use without
    /// checks.
    fn of(opcode: Opcode) -> Option<Self> {
        Some(match opcode {
            Opcode::LoadGlobal
            | Opcode::CellRefChecked
            | Opcode::Add
            | Opcode::Subtract
            | Opcode::Multiply
            | Opcode::AddSmall
            | Opcode::SubtractSmall
            | Opcode::Quotient
            | Opcode::Remainder
            | Opcode::Modulo
            | Opcode::Car
            | Opcode::Cdr
            | Opcode::Cadr
            | Opcode::Cddr
            | Opcode::VectorRef
            | Opcode::RecordRef
            | Opcode::Primitive0
            | Opcode::Primitive1
            | Opcode::Primitive2
            | Opcode::PrimitiveN
            | Opcode::Call
            | Opcode::CallGlobal
            | Opcode::CallKnown
            | Opcode::CallSelf
            | Opcode::CallSelfGlobal => Self::Value,
            Opcode::SetGlobal | Opcode::VectorSet | Opcode::RecordSet => Self::Nothing,
            Opcode::TailCall
            | Opcode::TailCallGlobal
            | Opcode::TailCallKnown
            | Opcode::TailCallSelfGlobal => Self::Result,
            Opcode::JumpIfLess
            | Opcode::JumpIfLessEqual
            | Opcode::JumpIfEqual
            | Opcode::JumpIfLessSmall
            | Opcode::JumpIfLessEqualSmall
            | Opcode::JumpIfEqualSmall
            | Opcode::JumpIfGreaterSmall
            | Opcode::JumpIfGreaterEqualSmall => Self::Jump { if_true: true },
            Opcode::JumpUnlessLess
            | Opcode::JumpUnlessLessEqual
            | Opcode::JumpUnlessEqual
            | Opcode::JumpUnlessLessSmall
            | Opcode::JumpUnlessLessEqualSmall
            | Opcode::JumpUnlessEqualSmall
            | Opcode::JumpUnlessGreaterSmall
            | Opcode::JumpUnlessGreaterEqualSmall => Self::Jump { if_true: false },
            _ => return None,
        })
    }
}
