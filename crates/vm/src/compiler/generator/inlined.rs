//! Calls of primitives: by special instructions, or directly.

use super::{Context, Done, Generator};
use crate::compiler::CompileError;
use crate::compiler::inline::Inline;
use crate::compiler::instruction::Opcode;
use crate::primitive::Primitive;
use kyocho_heap::value::Value;
use kyocho_syntax::core_form::Core;
use kyocho_syntax::datum::{DatumKind, NumberLiteral, Span};
use kyocho_syntax::location::Global;

impl Generator<'_, '_> {
    /// Compiles a call of a standard primitive in line; `false` if `global` is not one, or does not
    /// accept this number of arguments.
    pub(super) fn inlined(
        &mut self,
        global: &Global,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Result<bool, CompileError> {
        let Some((primitive, inline)) = self.shared.builtins.get(global) else { return Ok(false) };
        let count = arguments.len();
        if count < usize::from(primitive.min)
            || primitive.max.is_some_and(|max| count > usize::from(max))
        {
            return Ok(false);
        }
        let next = self.next;
        match (inline, count) {
            (Inline::Fold(opcode), 2..) => {
                self.fold(opcode, primitive, arguments, span, context)?;
            }
            (Inline::Binary(opcode), 2) => {
                let b = self.operand(&arguments[0])?;
                let c = self.operand(&arguments[1])?;
                self.compute(opcode, primitive, b, c, span, context)?;
            }
            (Inline::Unary(opcode), 1) => {
                let b = self.operand(&arguments[0])?;
                self.compute(opcode, primitive, b, 0, span, context)?;
            }
            (Inline::Store(opcode), 3) => {
                let a = self.operand(&arguments[0])?;
                let b = self.operand(&arguments[1])?;
                let c = self.operand(&arguments[2])?;
                self.asm.span(span);
                self.asm.op(opcode, a, b, c);
                self.asm.operand(address(primitive));
                self.constant(Value::UNSPECIFIED, context)?;
            }
            (Inline::Compare(_) | Inline::Same, 2)
            | (Inline::CompareZero(_) | Inline::Not | Inline::Null | Inline::Pair, 1) => {
                self.truth_of(global, arguments, span, context)?;
            }
            _ => self.primitive(primitive, arguments, span, context)?,
        }
        self.next = next;
        Ok(true)
    }

    /// One instruction that writes its result into the context.
    fn compute(
        &mut self,
        opcode: Opcode,
        primitive: &'static Primitive,
        b: u16,
        c: u16,
        span: Span,
        context: Context,
    ) -> Done {
        let to = self.target(context)?;
        self.asm.span(span);
        self.asm.op(opcode, to, b, c);
        if opcode.shape().words == 2 {
            self.asm.operand(address(primitive));
        }
        self.deliver(to, context);
        Ok(())
    }

    /// `(+ a b c)` is `(+ (+ a b) c)`; small constants become immediate operands.
    fn fold(
        &mut self,
        opcode: Opcode,
        primitive: &'static Primitive,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Done {
        let (first, rest) = match arguments {
            // a + b = b + a: a constant goes to the right.
            [a, b] if opcode == Opcode::Add && small(a).is_some() => (b, core::slice::from_ref(a)),
            [a, rest @ ..] => (a, rest),
            [] => return Ok(()),
        };
        let mut sum = self.operand(first)?;
        for (i, argument) in rest.iter().enumerate() {
            let last = i + 1 == rest.len();
            let next = self.next;
            let (opcode, c) = match (opcode, small(argument)) {
                (Opcode::Add, Some(n)) => (Opcode::AddSmall, n as u16),
                (Opcode::Subtract, Some(n)) => (Opcode::SubtractSmall, n as u16),
                _ => (opcode, self.operand(argument)?),
            };
            if last {
                return self.compute(opcode, primitive, sum, c, span, context);
            }
            self.next = next;
            let to = self.take()?;
            self.compute(opcode, primitive, sum, c, span, Context::Slot(to))?;
            sum = to;
        }
        Ok(())
    }

    /// A test whose value is needed.
    fn truth_of(
        &mut self,
        global: &Global,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Done {
        let (no, end) = (self.asm.label(), self.asm.label());
        self.test_call(global, arguments, span, false, no)?;
        self.constant(Value::TRUE, context)?;
        self.asm.goto(end);
        self.asm.bind(no);
        self.constant(Value::FALSE, context)?;
        self.asm.bind(end);
        Ok(())
    }

    fn primitive(
        &mut self,
        primitive: &'static Primitive,
        arguments: &[Core],
        span: Span,
        context: Context,
    ) -> Done {
        let (opcode, b, c) = match arguments {
            [] => (Opcode::Primitive0, 0, 0),
            [b] => (Opcode::Primitive1, self.operand(b)?, 0),
            [b, c] => {
                let b = self.operand(b)?;
                (Opcode::Primitive2, b, self.operand(c)?)
            }
            _ => {
                let first = self.next as u16;
                for argument in arguments {
                    let slot = self.take()?;
                    self.generate(argument, Context::Slot(slot))?;
                    self.next = usize::from(slot) + 1;
                }
                let count = u16::try_from(arguments.len());
                (Opcode::PrimitiveN, first, count.map_err(|_| CompileError::TooManySlots)?)
            }
        };
        self.compute(opcode, primitive, b, c, span, context)
    }
}

/// The word after an instruction that contains a primitive's address.
pub(super) fn address(primitive: &'static Primitive) -> u64 {
    core::ptr::from_ref(primitive).expose_provenance() as u64
}

/// The value of a constant that fits an immediate operand.
pub(super) fn small(core: &Core) -> Option<i16> {
    let Core::Constant(datum) = core else { return None };
    match *datum.kind {
        DatumKind::Number(NumberLiteral::Integer(n)) => i16::try_from(n).ok(),
        _ => None,
    }
}
