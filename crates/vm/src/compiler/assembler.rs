//! The assembler: combines instructions, labels and literals.
//!
//! `MakeClosure` takes `2 + free/4` words, rounded up. The first word is the instruction:
//! destination, number of free variables, arity flag. The second is the offset to two literals: the
//! code object and its entry. Then follow the sources of the free variables, four in a word. A
//! source is a slot; with the top bit set it is a free variable of the running closure.

use crate::compiler::code::Local;
use crate::compiler::instruction::{Instruction, Opcode, Role};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Span;
use kyocho_syntax::location::{Global, Location};
use kyocho_syntax::symbol::Symbol;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A position in the code that jumps can target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// Set in the source of a captured variable that is itself a free variable.
pub(crate) const SOURCE_FREE: u16 = 1 << 15;

/// The target of a jump is out of range.
#[derive(Debug)]
pub(crate) struct TooFar;

#[derive(Default)]
pub(crate) struct Assembler {
    pub(crate) words: Vec<u64>,
    pub(crate) constants: Vec<Value>,
    /// Locations that the code keeps alive, by their addresses.
    pub(crate) globals: BTreeMap<usize, Arc<Global>>,
    pub(crate) spans: Vec<(u32, Span)>,
    pub(crate) locals: Vec<Local>,
    literals: Vec<u64>,
    literal_of: HashMap<u64, usize>,
    /// Words whose upper half is the offset of a literal: the position of the word, the position
    /// from which the offset counts, and the index of the literal.
    literal_uses: Vec<(usize, usize, usize)>,
    labels: Vec<Option<usize>>,
    label_uses: Vec<(usize, Label)>,
    /// The number of jumps to each label.
    uses: Vec<usize>,
    last_bound: usize,
    unreachable: bool,
}

impl Instruction {
    /// Number of words that it takes.
    pub fn length(self) -> usize {
        match self.opcode() {
            Some(Opcode::MakeClosure) => 2 + usize::from(self.b()).div_ceil(4),
            Some(opcode) => opcode.shape().words,
            None => 1,
        }
    }
}

impl Assembler {
    pub(crate) fn here(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn label(&mut self) -> Label {
        self.labels.push(None);
        self.uses.push(0);
        Label(self.labels.len() - 1)
    }

    pub(crate) fn is_bound(&self, label: Label) -> bool {
        self.labels[label.0].is_some()
    }

    /// Binds `label` to the next instruction. Removes a jump there that was just written.
    pub(crate) fn bind(&mut self, label: Label) {
        let here = self.here();
        if self.last_bound < here && self.label_uses.last() == Some(&(here - 1, label)) {
            let jump = Instruction(self.words[here - 1]);
            if jump.opcode() == Some(Opcode::Jump) {
                self.label_uses.pop();
                self.uses[label.0] -= 1;
                self.words.pop();
                self.unreachable = false;
            }
        }
        self.labels[label.0] = Some(self.here());
        self.last_bound = self.here();
        self.unreachable &= self.uses[label.0] == 0;
    }

    /// Whether the last instruction is a jump to `label`, which `bind` would drop.
    pub(crate) fn falls_into(&self, label: Label) -> bool {
        self.unreachable
            && self.last_bound < self.here()
            && self.label_uses.last() == Some(&(self.here() - 1, label))
    }

    pub(crate) fn emit(&mut self, instruction: Instruction) {
        self.words.push(instruction.0);
        self.unreachable = matches!(
            instruction.opcode(),
            Some(
                Opcode::Jump
                    | Opcode::Loop
                    | Opcode::Return
                    | Opcode::ReturnWord
                    | Opcode::TailCall
                    | Opcode::TailCallGlobal
                    | Opcode::TailCallKnown
                    | Opcode::TailCallSelfGlobal
            )
        );
    }

    pub(crate) fn op(&mut self, opcode: Opcode, a: u16, b: u16, c: u16) {
        self.emit(Instruction::new(opcode, a, b, c));
    }

    pub(crate) fn wide(&mut self, opcode: Opcode, x: u8, a: u16, bc: i32) {
        self.emit(Instruction::wide(opcode, x, a, bc));
    }

    /// Adds a word that belongs to the instruction before it.
    pub(crate) fn operand(&mut self, word: u64) {
        self.words.push(word);
    }

    pub(crate) fn span(&mut self, span: Span) {
        self.spans.push((self.here() as u32, span));
    }

    /// From here on a variable has its value in `source`.
    pub(crate) fn local(&mut self, name: Symbol, source: u16, celled: bool) {
        let from = self.here() as u32;
        self.locals.push(Local { name, source, celled, from, until: u32::MAX });
    }

    /// From here on the slots from `slot` upwards contain no variables.
    pub(crate) fn end_locals(&mut self, slot: usize) {
        let here = self.here() as u32;
        let is_open = |local: &&mut Local| {
            local.until == u32::MAX
                && local.source & SOURCE_FREE == 0
                && usize::from(local.source) >= slot
        };
        self.locals.iter_mut().filter(is_open).for_each(|local| local.until = here);
    }

    /// Adds an instruction whose last operand is a jump to `label`.
    pub(crate) fn jump(&mut self, opcode: Opcode, a: u16, b: u16, label: Label) {
        self.label_uses.push((self.here(), label));
        self.uses[label.0] += 1;
        self.op(opcode, a, b, 0);
    }

    pub(crate) fn goto(&mut self, label: Label) {
        if !self.unreachable {
            let opcode = if self.is_bound(label) { Opcode::Loop } else { Opcode::Jump };
            self.jump(opcode, 0, 0, label);
        }
    }

    /// The index of a literal word that is not a heap value, or that `constants` keeps alive.
    pub(crate) fn literal(&mut self, word: u64) -> usize {
        if let Some(&index) = self.literal_of.get(&word) {
            return index;
        }
        let index = self.literal_apart(word);
        self.literal_of.insert(word, index);
        index
    }

    /// As [`Self::literal`], but never shared with an equal literal.
    pub(crate) fn literal_apart(&mut self, word: u64) -> usize {
        self.literals.push(word);
        self.literals.len() - 1
    }

    pub(crate) fn constant(&mut self, value: Value) -> usize {
        let before = self.literals.len();
        let index = self.literal(value.to_word());
        if index == before && (value.is_pair() || value.is_object()) {
            self.constants.push(value);
        }
        index
    }

    /// The word of a location, which the code keeps alive.
    pub(crate) fn keep(&mut self, location: &Location) -> u64 {
        let address = location.address();
        if let Some(global) = location.counted() {
            self.globals.entry(address).or_insert_with(|| Arc::clone(global));
        }
        address as u64
    }

    /// The index of a literal that is a location.
    pub(crate) fn location(&mut self, location: &Location) -> usize {
        let word = self.keep(location);
        self.literal(word)
    }

    /// Adds an instruction whose upper half is the offset of literal `index`.
    pub(crate) fn with_literal(&mut self, opcode: Opcode, x: u8, a: u16, index: usize) {
        self.literal_uses.push((self.here(), self.here(), index));
        self.wide(opcode, x, a, 0);
    }

    /// Adds a word whose upper half is the offset from `from` to literal `index`.
    pub(crate) fn literal_operand(&mut self, from: usize, index: usize) {
        self.literal_uses.push((self.here(), from, index));
        self.operand(0);
    }

    /// Resolves all labels and literals. Returns the words, and the position where the instructions
    /// end.
    pub(crate) fn finish(&mut self) -> Result<(Vec<u64>, usize), TooFar> {
        let end = self.here();
        let mut words = core::mem::take(&mut self.words);
        for &(at, label) in &self.label_uses {
            let target = self.labels[label.0].ok_or(TooFar)?;
            let offset = target as i64 - at as i64;
            let instruction = Instruction(words[at]);
            let far = instruction.opcode().is_some_and(|opcode| opcode.shape().b == Role::Far);
            words[at] |= if far {
                u64::from(i32::try_from(offset).map_err(|_| TooFar)? as u32) << 32
            } else {
                u64::from(i16::try_from(offset).map_err(|_| TooFar)? as u16) << 48
            };
        }
        for &(at, from, index) in &self.literal_uses {
            let offset = i32::try_from(end + index - from).map_err(|_| TooFar)?;
            words[at] |= u64::from(offset as u32) << 32;
        }
        words.append(&mut self.literals);
        Ok((words, end))
    }
}
