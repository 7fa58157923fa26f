//! The primitives for which the machine has instructions.
//!
//! The standard library's own locations cannot be assigned (R7RS, 5.2). So a call through such a
//! location always calls the primitive, and may be compiled to an instruction.

use crate::compiler::instruction::Opcode;
use crate::primitive::Primitive;
use kyocho_syntax::location::Global;
use std::collections::HashMap;

/// How a call of a primitive is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inline {
    /// By an instruction that calls the primitive's function: `Primitive0` to `PrimitiveN`.
    No,
    /// As a fixnum operation of two operands; more operands are folded from the left.
    Fold(Opcode),
    /// As an operation of exactly two operands.
    Binary(Opcode),
    /// As an operation of exactly one operand.
    Unary(Opcode),
    /// Writes operand 3 into operand 1 at operand 2.
    Store(Opcode),
    /// As a test of two numbers.
    Compare(Comparison),
    /// As a test against zero: `(zero? x)` and similar procedures.
    CompareZero(Comparison),
    /// `eq?`.
    Same,
    /// `not`.
    Not,
    /// `null?`.
    Null,
    /// `pair?`.
    Pair,
}

/// A comparison of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessEqual,
    Equal,
    Greater,
    GreaterEqual,
}

impl Comparison {
    /// The instruction that jumps if the comparison is `sense`, and whether its operands are
    /// swapped.
    pub(crate) const fn opcode(self, sense: bool) -> (Opcode, bool) {
        match (self, sense) {
            (Self::Less, true) => (Opcode::JumpIfLess, false),
            (Self::Less, false) => (Opcode::JumpUnlessLess, false),
            (Self::LessEqual, true) => (Opcode::JumpIfLessEqual, false),
            (Self::LessEqual, false) => (Opcode::JumpUnlessLessEqual, false),
            (Self::Equal, true) => (Opcode::JumpIfEqual, false),
            (Self::Equal, false) => (Opcode::JumpUnlessEqual, false),
            (Self::Greater, true) => (Opcode::JumpIfLess, true),
            (Self::Greater, false) => (Opcode::JumpUnlessLess, true),
            (Self::GreaterEqual, true) => (Opcode::JumpIfLessEqual, true),
            (Self::GreaterEqual, false) => (Opcode::JumpUnlessLessEqual, true),
        }
    }

    /// The instruction for a second operand that is a small constant.
    pub(crate) const fn small_opcode(self, sense: bool) -> Opcode {
        match (self, sense) {
            (Self::Less, true) => Opcode::JumpIfLessSmall,
            (Self::Less, false) => Opcode::JumpUnlessLessSmall,
            (Self::LessEqual, true) => Opcode::JumpIfLessEqualSmall,
            (Self::LessEqual, false) => Opcode::JumpUnlessLessEqualSmall,
            (Self::Equal, true) => Opcode::JumpIfEqualSmall,
            (Self::Equal, false) => Opcode::JumpUnlessEqualSmall,
            (Self::Greater, true) => Opcode::JumpIfGreaterSmall,
            (Self::Greater, false) => Opcode::JumpUnlessGreaterSmall,
            (Self::GreaterEqual, true) => Opcode::JumpIfGreaterEqualSmall,
            (Self::GreaterEqual, false) => Opcode::JumpUnlessGreaterEqualSmall,
        }
    }

    /// The comparison with swapped operands.
    pub(crate) const fn traded(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Equal => Self::Equal,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
        }
    }
}

/// The primitives in the standard library's locations, for the compiler.
#[derive(Debug, Default)]
pub struct Builtins {
    /// By the location's address. All are locations of the system, so no address is ever reused.
    by_location: HashMap<usize, (&'static Primitive, Inline)>,
}

impl Builtins {
    /// Declares that the value of `global` is always `primitive`.
    pub fn declare(&mut self, global: &Global, primitive: &'static Primitive) {
        self.by_location.insert(global.address(), (primitive, inline_of(primitive.name)));
    }

    /// Withdraws a declaration: the value of `global` is another one.
    pub fn forget(&mut self, global: &Global) {
        self.by_location.remove(&global.address());
    }

    pub(crate) fn get(&self, global: &Global) -> Option<(&'static Primitive, Inline)> {
        self.by_location.get(&global.address()).copied()
    }

    /// The primitive for this comparison.
    pub(crate) fn comparison(&self, comparison: Comparison) -> Option<&'static Primitive> {
        let wanted = Inline::Compare(comparison);
        self.by_location
            .values()
            .find(|(_, inline)| *inline == wanted)
            .map(|&(primitive, _)| primitive)
    }
}

fn inline_of(name: &str) -> Inline {
    match name {
        "+" => Inline::Fold(Opcode::Add),
        "-" => Inline::Fold(Opcode::Subtract),
        "*" => Inline::Fold(Opcode::Multiply),
        "quotient" | "truncate-quotient" => Inline::Binary(Opcode::Quotient),
        "remainder" | "truncate-remainder" => Inline::Binary(Opcode::Remainder),
        "modulo" | "floor-remainder" => Inline::Binary(Opcode::Modulo),
        "<" => Inline::Compare(Comparison::Less),
        "<=" => Inline::Compare(Comparison::LessEqual),
        "=" => Inline::Compare(Comparison::Equal),
        ">" => Inline::Compare(Comparison::Greater),
        ">=" => Inline::Compare(Comparison::GreaterEqual),
        "zero?" => Inline::CompareZero(Comparison::Equal),
        "positive?" => Inline::CompareZero(Comparison::Greater),
        "negative?" => Inline::CompareZero(Comparison::Less),
        "eq?" => Inline::Same,
        "not" => Inline::Not,
        "null?" => Inline::Null,
        "pair?" => Inline::Pair,
        "cons" | "%cons" => Inline::Binary(Opcode::Cons),
        "car" => Inline::Unary(Opcode::Car),
        "cdr" => Inline::Unary(Opcode::Cdr),
        "cadr" => Inline::Unary(Opcode::Cadr),
        "cddr" => Inline::Unary(Opcode::Cddr),
        "vector-ref" => Inline::Binary(Opcode::VectorRef),
        "vector-set!" => Inline::Store(Opcode::VectorSet),
        _ => Inline::No,
    }
}
