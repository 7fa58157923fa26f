//! The rules of a `syntax-rules` macro as data. The expander compiles and applies them.

use crate::datum::{Datum, Home, Identifier};
use crate::symbol::Symbol;

/// A macro: its rules, and the scope where its free identifiers are looked up.
#[derive(Debug)]
pub struct Macro {
    pub(crate) home: Home,
    pub(crate) rules: Vec<Rule>,
    /// The form that it was compiled from.
    pub(crate) written: Datum,
    pub(crate) name: Option<Symbol>,
}

impl Macro {
    /// Its rules as written, the scope of its definition, and its name.
    #[must_use]
    pub fn source(&self) -> (&Datum, Home, Option<Symbol>) {
        (&self.written, self.home, self.name)
    }
}

/// One rule of a macro.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The pattern for a use of the macro, without the keyword.
    pub(crate) pattern: Pattern,
    pub(crate) template: Template,
    pub(crate) slots: usize,
    /// Identifiers that the template inserts.
    pub(crate) inserted: Vec<Identifier>,
    /// The pattern as written, for messages.
    pub(crate) written: Datum,
}

/// The pattern of a rule.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// `_`.
    Anything,
    /// A pattern variable: the index of its slot.
    Slot(usize),
    /// An identifier with the meaning of this literal.
    Literal(Identifier),
    /// A datum that is `equal?` to this one.
    Equal(Datum),
    List(Box<Sequence>),
    Vector(Box<Sequence>),
}

/// The pattern of a list or vector: `(p1 ... pn q <ellipsis> r1 ... rm . tail)`.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub(crate) before: Vec<Pattern>,
    pub(crate) repeated: Option<Repeated>,
    pub(crate) after: Vec<Pattern>,
    /// `None` for `()`.
    pub(crate) tail: Option<Pattern>,
}

/// The pattern before an ellipsis, and the slots in it.
#[derive(Debug)]
pub(crate) struct Repeated {
    pub(crate) pattern: Pattern,
    pub(crate) slots: Vec<usize>,
}

/// The template of a rule.
#[derive(Debug)]
pub(crate) enum Template {
    /// What a pattern variable matched: the index of its slot.
    Slot(usize),
    /// An identifier that the macro inserts: its index in the rule's `inserted`.
    Inserted(usize),
    Constant(Datum),
    List(Vec<Element>, Box<Self>),
    Vector(Vec<Element>),
}

/// A template and the ellipses after it.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) template: Template,
    pub(crate) ellipses: u32,
    /// The slots that repeat here. For each slot: the number of these ellipses, counted from the
    /// innermost, that repeat it.
    pub(crate) repeating: Vec<(usize, u32)>,
}
