//! Forms whose value only decides where execution continues. Conditions become jumps, and no
//! boolean is made.

use super::inlined::{address, small};
use super::{Context, Done, Generator};
use crate::compiler::assembler::Label;
use crate::compiler::inline::{Comparison, Inline};
use crate::compiler::instruction::Opcode;
use crate::primitive::Primitive;
use kyocho_syntax::core_form::{Core, Variable};
use kyocho_syntax::datum::{DatumKind, Span};
use kyocho_syntax::location::Global;
use std::rc::Rc;

impl Generator<'_, '_> {
    pub(super) fn conditional(
        &mut self,
        test: &Core,
        consequent: &Core,
        alternative: &Core,
        context: Context,
    ) -> Done {
        let (no, end) = (self.asm.label(), self.asm.label());
        let next = self.next;
        self.test(test, false, no)?;
        self.next = next;
        self.generate(consequent, context)?;
        self.next = next;
        self.asm.goto(end);
        self.asm.bind(no);
        self.generate(alternative, context)?;
        self.next = next;
        self.asm.bind(end);
        Ok(())
    }

    /// Jumps to `label` if the truth of the form is `sense`, else falls through.
    pub(super) fn test(&mut self, core: &Core, sense: bool, label: Label) -> Done {
        let next = self.next;
        match core {
            Core::Constant(_) | Core::Unspecified | Core::Lambda(_) => {
                if is_true(core) == sense {
                    self.asm.goto(label);
                }
            }
            Core::If(test, yes, no) => self.test_if(test, yes, no, sense, label)?,
            Core::Sequence(forms) => {
                let Some((last, others)) = forms.split_last() else { return Ok(()) };
                for form in others {
                    self.generate(form, Context::Effect)?;
                    self.next = next;
                }
                self.test(last, sense, label)?;
            }
            Core::Let(bindings, body) => match (bindings.as_slice(), &**body) {
                ([(variable, first)], Core::If(test, yes, second))
                    if is_or(variable, test, yes, second) =>
                {
                    self.test_or(first, second, sense, label)?;
                }
                _ => self.test_value(core, sense, label)?,
            },
            Core::Call(callee, arguments, span) => match &**callee {
                Core::Global(global, _) if self.is_test(global, arguments.len()) => {
                    self.test_call(global, arguments, *span, sense, label)?;
                }
                _ => self.test_value(core, sense, label)?,
            },
            _ => self.test_value(core, sense, label)?,
        }
        self.next = next;
        Ok(())
    }

    fn test_value(&mut self, core: &Core, sense: bool, label: Label) -> Done {
        let slot = self.operand(core)?;
        let opcode = if sense { Opcode::JumpIfTrue } else { Opcode::JumpIfFalse };
        self.asm.jump(opcode, slot, 0, label);
        Ok(())
    }

    fn test_if(&mut self, test: &Core, yes: &Core, no: &Core, sense: bool, label: Label) -> Done {
        let constant = |core| matches!(core, &Core::Constant(_) | &Core::Unspecified);
        if constant(yes) && constant(no) && is_true(yes) != is_true(no) {
            return self.test(test, is_true(yes) == sense, label);
        }
        let end = self.asm.label();
        if constant(no) && is_true(no) != sense {
            // (and test yes) that jumps if true; or the dual form.
            self.test(test, false, end)?;
            self.test(yes, sense, label)?;
        } else if constant(no) {
            self.test(test, false, label)?;
            self.test(yes, sense, label)?;
        } else if constant(yes) && is_true(yes) == sense {
            self.test(test, true, label)?;
            self.test(no, sense, label)?;
        } else {
            let other = self.asm.label();
            self.test(test, false, other)?;
            self.test(yes, sense, label)?;
            self.asm.goto(end);
            self.asm.bind(other);
            self.test(no, sense, label)?;
        }
        self.asm.bind(end);
        Ok(())
    }

    fn test_or(&mut self, first: &Core, second: &Core, sense: bool, label: Label) -> Done {
        if sense {
            self.test(first, true, label)?;
            return self.test(second, true, label);
        }
        let end = self.asm.label();
        self.test(first, true, end)?;
        self.test(second, false, label)?;
        self.asm.bind(end);
        Ok(())
    }

    fn is_test(&self, global: &Global, count: usize) -> bool {
        let Some((_, inline)) = self.shared.builtins.get(global) else { return false };
        matches!(
            (inline, count),
            (Inline::Compare(_) | Inline::Same, 2)
                | (Inline::CompareZero(_) | Inline::Not | Inline::Null | Inline::Pair, 1)
        )
    }

    /// A call for which `is_test` is true.
    pub(super) fn test_call(
        &mut self,
        global: &Global,
        arguments: &[Core],
        span: Span,
        sense: bool,
        label: Label,
    ) -> Done {
        let Some((primitive, inline)) = self.shared.builtins.get(global) else { return Ok(()) };
        let next = self.next;
        match (inline, arguments) {
            (Inline::Not, [value]) => self.test(value, !sense, label)?,
            (Inline::Null, [value]) => {
                let slot = self.operand(value)?;
                let opcode = if sense { Opcode::JumpIfNull } else { Opcode::JumpUnlessNull };
                self.asm.jump(opcode, slot, 0, label);
            }
            (Inline::Pair, [value]) => {
                let slot = self.operand(value)?;
                let opcode = if sense { Opcode::JumpIfPair } else { Opcode::JumpUnlessPair };
                self.asm.jump(opcode, slot, 0, label);
            }
            (Inline::Same, [a, b]) => {
                let a = self.operand(a)?;
                let b = self.operand(b)?;
                self.branch(sense, label, |this, sense, label| this.same(a, b, sense, label));
            }
            (Inline::CompareZero(comparison), [a]) => {
                let a = self.operand(a)?;
                self.compare_small(comparison, primitive, a, 0, span, sense, label);
            }
            (Inline::Compare(comparison), [a, b]) => {
                self.compare(comparison, primitive, a, b, span, sense, label)?;
            }
            _ => {}
        }
        self.next = next;
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction has as many parts")]
    fn compare(
        &mut self,
        comparison: Comparison,
        primitive: &'static Primitive,
        a: &Core,
        b: &Core,
        span: Span,
        sense: bool,
        label: Label,
    ) -> Done {
        if let Some(n) = small(b) {
            let a = self.operand(a)?;
            self.compare_small(comparison, primitive, a, n, span, sense, label);
            return Ok(());
        }
        let (mut left, mut right) = (self.operand(a)?, self.operand(b)?);
        if comparison.opcode(sense).1 {
            (left, right) = (right, left);
        }
        let primitive = traded_name(comparison, primitive, self);
        self.branch(sense, label, |this, sense, label| {
            this.asm.span(span);
            this.asm.jump(comparison.opcode(sense).0, left, right, label);
            this.asm.operand(address(primitive));
        });
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction has as many parts")]
    fn compare_small(
        &mut self,
        comparison: Comparison,
        primitive: &'static Primitive,
        a: u16,
        n: i16,
        span: Span,
        sense: bool,
        label: Label,
    ) {
        self.branch(sense, label, |this, sense, label| {
            this.asm.span(span);
            this.asm.jump(comparison.small_opcode(sense), a, n as u16, label);
            this.asm.operand(address(primitive));
        });
    }

    fn same(&mut self, a: u16, b: u16, sense: bool, label: Label) {
        let opcode = if sense { Opcode::JumpIfSame } else { Opcode::JumpUnlessSame };
        self.asm.jump(opcode, a, b, label);
    }

    /// A branch of 16 bits. In a long procedure it jumps over a jump of 32 bits.
    fn branch(&mut self, sense: bool, label: Label, emit: impl Fn(&mut Self, bool, Label)) {
        if self.shape.far {
            let over = self.asm.label();
            emit(self, !sense, over);
            self.asm.goto(label);
            self.asm.bind(over);
        } else {
            emit(self, sense, label);
        }
    }
}

/// The primitive whose operand order matches the instruction: `<` for a `>` with swapped operands.
fn traded_name(
    comparison: Comparison,
    primitive: &'static Primitive,
    generator: &Generator<'_, '_>,
) -> &'static Primitive {
    if comparison.opcode(true).1 {
        generator.shared.builtins.comparison(comparison.traded()).unwrap_or(primitive)
    } else {
        primitive
    }
}

/// Whether a constant form counts as true.
fn is_true(core: &Core) -> bool {
    match core {
        Core::Constant(datum) => !matches!(*datum.kind, DatumKind::Boolean(false)),
        _ => true,
    }
}

/// Whether `(let ((variable ..)) (if test yes second))` is the expansion of an `or`.
fn is_or(variable: &Rc<Variable>, test: &Core, yes: &Core, second: &Core) -> bool {
    let is_it = |core: &Core| matches!(core, Core::Local(of, _) if Rc::ptr_eq(of, variable));
    !variable.mutated.get() && is_it(test) && is_it(yes) && !may_use(second, variable, &mut 64)
}

/// Whether a form may refer to the variable. After `budget` nodes the answer is yes.
fn may_use(core: &Core, variable: &Rc<Variable>, budget: &mut usize) -> bool {
    if *budget == 0 {
        return true;
    }
    *budget -= 1;
    match core {
        Core::Constant(_) | Core::Unspecified | Core::Global(..) => false,
        Core::Local(of, _) => Rc::ptr_eq(of, variable),
        Core::If(a, b, c) => [a, b, c].into_iter().any(|part| may_use(part, variable, budget)),
        Core::Call(callee, arguments, _) => {
            may_use(callee, variable, budget)
                || arguments.iter().any(|argument| may_use(argument, variable, budget))
        }
        Core::Let(bindings, body) => {
            bindings.iter().any(|(_, init)| may_use(init, variable, budget))
                || may_use(body, variable, budget)
        }
        Core::Sequence(forms) => forms.iter().any(|form| may_use(form, variable, budget)),
        _ => true,
    }
}
