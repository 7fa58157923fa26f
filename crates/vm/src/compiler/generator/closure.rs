//! Closures: the variables that they capture, and the sources of these variables.

use super::{Context, Done, Generator, Outline, Place, generate_lambda};
use crate::compiler::analysis::fixed_clause;
use crate::compiler::assembler::SOURCE_FREE;
use crate::compiler::code::{ARITY_FIXED_MAX, ARITY_GENERAL};
use crate::compiler::instruction::Opcode;
use crate::compiler::{CAPTURED_MAX, CompileError};
use kyocho_heap::heap::Kind;
use kyocho_heap::value::Value;
use kyocho_syntax::core_form::{Lambda, Variable};
use std::rc::Rc;

#[derive(Default)]
pub(super) struct Captures {
    /// The captured variables, and where they are now.
    pub(super) sources: Vec<(Rc<Variable>, Place)>,
    /// Where the closure's code finds its free variables.
    pub(super) inner: Vec<(Rc<Variable>, Place)>,
}

impl Generator<'_, '_> {
    /// The variables that a closure must capture, and where its code finds every variable that it
    /// names.
    pub(super) fn captures(&self, lambda: &Rc<Lambda>) -> Result<Captures, CompileError> {
        let mut captures = Captures::default();
        for variable in self.shared.analysis.free(lambda) {
            let Some(place) = self.places.get(&Rc::as_ptr(variable)) else { continue };
            let index = captures.sources.len() as u16;
            let inner = match place {
                Place::Slot(_) | Place::Free(_) | Place::Itself => Place::Free(index),
                Place::CellSlot(_) | Place::CellFree(_) => Place::CellFree(index),
                Place::Constant(_) | Place::Label(..) => {
                    captures.inner.push((Rc::clone(variable), place.clone()));
                    continue;
                }
            };
            captures.inner.push((Rc::clone(variable), inner));
            captures.sources.push((Rc::clone(variable), place.clone()));
        }
        if captures.sources.len() > CAPTURED_MAX {
            return Err(CompileError::TooManyCaptured);
        }
        Ok(captures)
    }

    pub(super) fn closure(
        &mut self,
        lambda: &Rc<Lambda>,
        outline: &Outline,
        context: Context,
    ) -> Done {
        if context == Context::Effect {
            return Ok(());
        }
        let captures = self.captures(lambda)?;
        let (code, entry) = generate_lambda(self.shared, lambda, outline, &captures.inner)?;
        if captures.sources.is_empty() {
            let closure = self.constant_closure(lambda, code, entry)?;
            return self.constant(closure, context);
        }
        let next = self.next;
        let to = self.target(context)?;
        self.next = self.next.max(usize::from(to) + 1);
        let sources = self.sources(&captures)?;
        self.make_closure(to, code, entry, lambda, &sources);
        self.next = next;
        self.deliver(to, context);
        Ok(())
    }

    /// The sources of a closure's free variables.
    pub(super) fn sources(&mut self, captures: &Captures) -> Result<Vec<u16>, CompileError> {
        let mut sources = Vec::new();
        for (_, place) in &captures.sources {
            sources.push(match place {
                Place::Slot(slot) | Place::CellSlot(slot) => *slot,
                Place::Free(index) | Place::CellFree(index) => *index | SOURCE_FREE,
                _ => {
                    let slot = self.take()?;
                    self.asm.op(Opcode::SelfRef, slot, 0, 0);
                    slot
                }
            });
        }
        Ok(sources)
    }

    pub(super) fn make_closure(
        &mut self,
        to: u16,
        code: Value,
        entry: u64,
        lambda: &Lambda,
        sources: &[u16],
    ) {
        let from = self.asm.here();
        let flag = u16::from(arity_flag(lambda));
        self.asm.op(Opcode::MakeClosure, to, sources.len() as u16, flag);
        let literal = self.asm.literal_apart(code.to_word());
        self.asm.constants.push(code);
        self.asm.literal_apart(entry);
        self.asm.literal_operand(from, literal);
        for four in sources.chunks(4) {
            let word = four.iter().rev().fold(0, |word, &source| word << 16 | u64::from(source));
            self.asm.operand(word);
        }
    }

    pub(super) fn constant_closure(
        &mut self,
        lambda: &Lambda,
        code: Value,
        entry: u64,
    ) -> Result<Value, CompileError> {
        let flag = arity_flag(lambda);
        let closure = self.shared.mutator.object(Kind::Closure, flag, 2)?;
        closure.set_payload_word(0, code.to_word());
        closure.set_payload_word(1, entry);
        Ok(self.shared.mutator.keep(closure))
    }
}

/// The closure flag of a lambda; equal to `Code::arity_flag`.
pub(super) fn arity_flag(lambda: &Lambda) -> u8 {
    match fixed_clause(lambda) {
        Some(clause) if clause.required.len() <= ARITY_FIXED_MAX => clause.required.len() as u8,
        _ => ARITY_GENERAL,
    }
}
