//! Backtraces: the procedures on the stack, with their source positions.

use crate::compiler::assembler::SOURCE_FREE;
use crate::compiler::code::Code;
use crate::compiler::instruction::{Instruction, Opcode};
use crate::machine::access::{Frame, Pc};
use crate::machine::continuation::SEGMENT_HEAD;
use crate::machine::procedure;
use crate::machine::{Machine, Underflow};
use kyocho_heap::heap::Kind;
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Span;
use kyocho_syntax::symbol::Symbol;

/// A procedure on the stack.
#[derive(Clone, Copy, Debug)]
pub struct TraceEntry {
    /// Its name.
    pub procedure: Option<Symbol>,
    /// The source position of its current instruction.
    pub span: Option<Span>,
}

impl Machine {
    /// The procedures on the stack, the innermost first, at most `count` of them.
    pub fn backtrace(&self, count: usize) -> Vec<TraceEntry> {
        let mut entries = Vec::new();
        let mut frame = self.frame;
        let mut pc = self.pending.is_none().then_some(self.pc);
        while entries.len() < count {
            entries.push(entry_of(frame.callee(), pc));
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

    /// Adds the frames in the segments of a continuation.
    fn push_segments(&self, entries: &mut Vec<TraceEntry>, count: usize) {
        let room = count - entries.len().min(count);
        let captured = Captured::under(self.underflow).take(room);
        entries.extend(captured.map(|frame| frame.entry()));
    }
}

/// The current instruction in the caller of `frame`: the call before the return address, or the
/// instruction that raised.
fn fault_or_call(frame: Frame, back: Pc) -> Pc {
    if is_stub(back) { Pc::from_word(frame.value(-3).to_word()) } else { back.at(-1) }
}

/// Whether this return address is the stub of a frame that has raised.
fn is_stub(back: Pc) -> bool {
    Instruction(back.word(0)).opcode() == Some(Opcode::Raised)
}

fn code_of<'a>(callee: Value) -> Option<&'a Code> {
    callee.is_kind(Kind::Closure).then(|| callee.field_at(0).as_foreign::<Code>())?
}

/// The source position of the first instruction of a procedure that has a position.
pub fn span_of(procedure: Value) -> Option<Span> {
    code_of(procedure)?.spans.first().map(|&(_, span)| span)
}

fn entry_of(callee: Value, pc: Option<Pc>) -> TraceEntry {
    let span = code_of(callee).zip(pc).and_then(|(code, pc)| {
        let position = code.position(pc.to_word())?;
        code.span_at(position)
    });
    TraceEntry { procedure: procedure::name_of(callee), span }
}

/// The frames of a continuation, the innermost first.
#[derive(Debug)]
pub struct Captured {
    segment: Value,
    length: usize,
    back: Pc,
}

impl Captured {
    fn under(underflow: Underflow) -> Self {
        let Underflow { segment, length, pc } = underflow;
        Self { segment, length, back: pc }
    }

    /// The frames of a continuation object.
    pub fn of(continuation: Value) -> Self {
        let length = continuation.field_at(2).as_fixnum().unwrap_or(0) as usize;
        let back = Pc::from_word(continuation.payload_word(3));
        Self { segment: continuation.field_at(1), length, back }
    }

    fn word(&self, at: usize) -> Value {
        self.segment.field_at(SEGMENT_HEAD + at)
    }
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame {
    callee: Value,
    pc: Pc,
    segment: Value,
    /// Index of its slots in the segment.
    first: usize,
    end: usize,
}

impl Iterator for Captured {
    type Item = CapturedFrame;

    fn next(&mut self) -> Option<CapturedFrame> {
        if !self.segment.is_kind(Kind::Segment) {
            return None;
        }
        let from = self.length - (self.back.returns_over() + 2);
        let pc = if is_stub(self.back) {
            Pc::from_word(self.word(self.length - 1).to_word())
        } else {
            self.back.at(-1)
        };
        let (first, end) = (from + 2, self.length);
        let callee = self.word(from + 1);
        let frame = CapturedFrame { callee, pc, segment: self.segment, first, end };
        if from > 0 {
            (self.length, self.back) = (from, Pc::from_word(self.word(from).to_word()));
        } else {
            self.length = self.segment.field_at(2).as_fixnum().unwrap_or(0) as usize;
            self.back = Pc::from_word(self.segment.field_at(3).to_word());
            self.segment = self.segment.field_at(1);
        }
        Some(frame)
    }
}

impl CapturedFrame {
    /// The procedure, and the source position of its current instruction.
    pub fn entry(&self) -> TraceEntry {
        entry_of(self.callee, Some(self.pc))
    }

    /// The variables that have a value at its current instruction.
    pub fn locals(&self) -> Vec<(Symbol, Value)> {
        let Some(code) = code_of(self.callee) else { return Vec::new() };
        let Some(position) = code.position(self.pc.to_word()) else { return Vec::new() };
        let values = code.locals_at(position).filter_map(|local| {
            let held = match usize::from(local.source & !SOURCE_FREE) {
                free if local.source & SOURCE_FREE != 0 => self.callee.field_at(free + 2),
                slot if self.first + slot < self.end => {
                    self.segment.field_at(SEGMENT_HEAD + self.first + slot)
                }
                _ => return None,
            };
            let value = if local.celled { held.field(0)? } else { held };
            (value != Value::UNINITIALISED).then_some((local.name, value))
        });
        values.collect()
    }
}
