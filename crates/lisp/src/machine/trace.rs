//! Backtraces: who called whom, with the places in the source.

use crate::compiler::code::Code;
use crate::compiler::instruction::{Instruction, Opcode};
use crate::heap::Kind;
use crate::machine::Machine;
use crate::machine::access::{Frame, Pc};
use crate::machine::condition;
use crate::symbol::Symbol;
use crate::syntax::datum::Span;
use crate::value::Value;

/// One procedure on the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceEntry {
    /// Its name.
    pub(crate) procedure: Option<Symbol>,
    /// Where it was.
    pub(crate) span: Option<Span>,
}

impl Machine {
    /// The procedures on the stack, the innermost first, at most `count` of them.
    pub(crate) fn backtrace(&self, count: usize) -> Vec<TraceEntry> {
        let mut entries = Vec::new();
        let mut frame = self.frame;
        let mut pc = self.pending.is_none().then_some(self.pc);
        while entries.len() < count {
            self.push_entry(&mut entries, frame.callee(), pc);
            let back = frame.return_pc();
            if back == Pc::underflow() {
                break;
            }
            let below = frame.down(back.returns_over() + 2);
            pc = Some(fault_or_call(frame, back));
            frame = below;
        }
        self.push_segments(&mut entries, count);
        entries
    }

    fn push_entry(&self, entries: &mut Vec<TraceEntry>, callee: Value, pc: Option<Pc>) {
        let code = if callee.is_kind(Kind::Closure) {
            callee.field_at(0).as_foreign::<Code>()
        } else {
            None
        };
        let span = code.zip(pc).and_then(|(code, pc)| {
            let position = code.position(pc.to_word())?;
            code.span_at(position)
        });
        entries.push(TraceEntry { procedure: condition::name_of(callee), span });
    }

    /// The frames that a continuation captured.
    fn push_segments(&self, entries: &mut Vec<TraceEntry>, count: usize) {
        let mut segment = self.underflow.segment;
        let mut length = self.underflow.length;
        let mut back = self.underflow.pc;
        while segment.is_kind(Kind::Segment) && entries.len() < count {
            let word = |at: usize| segment.field_at(super::continuation::SEGMENT_HEAD + at);
            let from = length - (back.returns_over() + 2);
            self.push_entry(entries, word(from + 1), Some(back.at(-1)));
            if from > 0 {
                length = from;
                back = Pc::from_word(word(from).to_word());
                continue;
            }
            length = segment.field_at(2).as_fixnum().unwrap_or(0) as usize;
            back = Pc::from_word(segment.field_at(3).to_word());
            segment = segment.field_at(1);
        }
    }
}

/// Where the caller of `frame` was: at the call before the return address, or where it raised.
fn fault_or_call(frame: Frame, back: Pc) -> Pc {
    if Instruction(back.word(0)).opcode() == Some(Opcode::Raised) {
        return Pc::from_word(frame.value(-3).to_word());
    }
    back.at(-1)
}
