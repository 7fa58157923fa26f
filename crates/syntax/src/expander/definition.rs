//! Definitions that the expander has found and not expanded yet.

use super::Core;
use crate::core_form::Variable;
use crate::datum::Datum;
use crate::rules::Macro;
use crate::special::Special;
use std::rc::Rc;
use std::sync::Arc;

/// The source of a definition's value.
pub(super) enum Init {
    Expression(Datum),
    /// An expression between definitions; its value is ignored.
    Effect(Datum),
    /// `(define (name . formals) . body)`: the formals, the body and the whole form.
    Procedure(Datum, Datum, Datum),
    /// The values of an expression as a list: exactly this many, or at least this many if `true`.
    Values(usize, bool, Datum),
    /// A core form that exists already.
    Core(Core),
}

/// A local variable, and the source of its value.
pub(super) struct Definition {
    pub(super) variable: Rc<Variable>,
    pub(super) init: Init,
}

/// The meaning of a keyword that `define-syntax` or `let-syntax` defines.
pub(super) enum Keyword {
    Macro(Arc<Macro>),
    Special(Special),
}
