//! Calls of labels, known procedures, globals and other expressions, in tail position or not.

use super::{Context, Done, Generator, Place};
use crate::compiler::analysis::fixed_clause;
use crate::compiler::code::PROLOGUE_WORDS;
use crate::compiler::instruction::Opcode;
use crate::compiler::{CompileError, code::ARITY_FIXED_MAX};
use kyocho_syntax::core_form::{Core, Variable};
use kyocho_syntax::datum::Span;
use kyocho_syntax::location::Location;
use std::rc::Rc;

/// Slots of a call before its arguments: return address and callee.
const CALL_SLOTS: usize = 2;

impl Generator<'_, '_> {
    pub(super) fn call(
        &mut self,
        callee: &Core,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Done {
        match callee {
            Core::Global(global, _) => {
                if self.inlined(global, arguments, span, context)? {
                    return Ok(());
                }
                self.call_global(global, arguments, span, context)
            }
            Core::Local(variable, _) => self.call_local(variable, callee, arguments, span, context),
            _ => self.call_any(callee, arguments, span, context),
        }
    }

    /// The first slot of a call whose result goes to the context. It is the context's own slot if
    /// that is the last one allocated.
    fn base(&self, context: Context) -> usize {
        match context {
            Context::Slot(slot) if usize::from(slot) + 1 == self.next => usize::from(slot),
            _ => self.next,
        }
    }

    /// Evaluates arguments into the slots of a call at `base`.
    fn arguments(&mut self, base: usize, arguments: &[Core]) -> Done {
        self.next = base + CALL_SLOTS;
        self.claim(self.next)?;
        for argument in arguments {
            let slot = self.take()?;
            self.generate(argument, Context::Slot(slot))?;
            self.next = usize::from(slot) + 1;
        }
        Ok(())
    }

    /// Delivers the result after a call that is not in tail position.
    fn result(&mut self, base: usize, context: Context) {
        if let Context::Slot(_) = context {
            self.deliver(base as u16, context);
        }
    }

    fn call_local(
        &mut self,
        variable: &Rc<Variable>,
        callee: &Core,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Done {
        let place = self.place(variable)?;
        if let Place::Label(label, slots) = &place {
            return self.jump_to(*label, slots, arguments);
        }
        let fits = self
            .shared
            .analysis
            .known(variable)
            .and_then(|lambda| fixed_clause(lambda))
            .is_some_and(|clause| clause.required.len() == arguments.len())
            && arguments.len() <= ARITY_FIXED_MAX
            && !self.is_celled(variable);
        if !fits {
            return self.call_any(callee, arguments, span, context);
        }
        let next = self.next;
        let base = self.base(context);
        let count = arguments.len() as u8;
        self.arguments(base, arguments)?;
        self.asm.span(span);
        if let (Place::Itself, Some((entry, _)), false) =
            (&place, self.fixed, context == Context::Tail)
        {
            let offset = entry as i32 - self.asm.here() as i32;
            self.asm.wide(Opcode::CallSelf, count, base as u16, offset);
        } else {
            self.generate(callee, Context::Slot(base as u16 + 1))?;
            let tail = context == Context::Tail;
            let opcode = if tail { Opcode::TailCallKnown } else { Opcode::CallKnown };
            self.asm.wide(opcode, count, base as u16, 0);
        }
        self.next = next;
        self.result(base, context);
        Ok(())
    }

    fn call_any(
        &mut self,
        callee: &Core,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Done {
        let next = self.next;
        let base = self.base(context);
        self.next = base + 1;
        let slot = self.take()?;
        self.generate(callee, Context::Slot(slot))?;
        self.arguments(base, arguments)?;
        self.asm.span(span);
        let opcode = if context == Context::Tail { Opcode::TailCall } else { Opcode::Call };
        self.asm.op(opcode, base as u16, arguments.len() as u16, 0);
        self.next = next;
        self.result(base, context);
        Ok(())
    }

    /// Whether this procedure is defined as the global and takes this number of arguments.
    fn is_own_global(&self, global: &Location, count: usize) -> bool {
        let own = self.outline.global.as_ref() == Some(global);
        own && self.fixed == Some((PROLOGUE_WORDS, count)) && count <= ARITY_FIXED_MAX
    }

    pub(super) fn call_global(
        &mut self,
        global: &Location,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Done {
        let Ok(count) = u8::try_from(arguments.len()) else {
            return self.call_any(&Core::Global(global.clone(), span), arguments, span, context);
        };
        let next = self.next;
        let base = self.base(context);
        self.arguments(base, arguments)?;
        self.asm.span(span);
        let tail = context == Context::Tail;
        let slot = u16::try_from(base).map_err(|_| CompileError::TooManySlots)?;
        if self.is_own_global(global, arguments.len()) {
            let opcode = if tail { Opcode::TailCallSelfGlobal } else { Opcode::CallSelfGlobal };
            let offset = PROLOGUE_WORDS as i32 - 1 - self.asm.here() as i32;
            self.asm.wide(opcode, count, slot, offset);
        } else {
            let opcode = if tail { Opcode::TailCallGlobal } else { Opcode::CallGlobal };
            let literal = self.asm.location(global);
            self.asm.with_literal(opcode, count, slot, literal);
        }
        self.next = next;
        self.result(base, context);
        Ok(())
    }
}
