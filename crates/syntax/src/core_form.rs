//! Core forms: the output of the expander and the input of the compiler. There are few of them, and
//! every name in them is resolved.

use super::datum::{Datum, Span};
use super::location::Location;
use crate::symbol::Symbol;
use core::cell::Cell;
use std::rc::Rc;

/// A local variable. Each binding has its own object, and the object's address is its identity.
#[derive(Debug)]
pub struct Variable {
    /// Its name, for messages.
    pub name: Symbol,
    /// Whether anything assigns it after its initialisation (`set!`).
    pub mutated: Cell<bool>,
    /// Whether a lambda other than the binding one refers to it.
    pub captured: Cell<bool>,
}

/// A core form. Each `Span` is the position of the source form that it was made from.
#[derive(Debug)]
pub enum Core {
    /// A self-evaluating or quoted datum (aliases already stripped to symbols).
    Constant(Datum),
    /// The unspecified value.
    Unspecified,
    /// The value of a local variable.
    Local(Rc<Variable>, Span),
    /// `(set! local value)`.
    SetLocal(Rc<Variable>, Box<Self>, Span),
    /// The value of a top-level variable. Raises an error if the variable is unbound.
    Global(Location, Span),
    /// `(set! global value)`. Raises an error if the variable is unbound.
    SetGlobal(Location, Box<Self>, Span),
    /// `(define global value)`.
    DefineGlobal(Location, Box<Self>, Span),
    /// `(if test then else)`.
    If(Box<Self>, Box<Self>, Box<Self>),
    /// Evaluates the forms in order; the value is the last one's. Never empty.
    Sequence(Vec<Self>),
    /// A procedure; `case-lambda` has several clauses.
    Lambda(Rc<Lambda>),
    /// `let`: the initial values are evaluated outside the scope of the variables.
    Let(Vec<(Rc<Variable>, Self)>, Box<Self>),
    /// `letrec*`, internal definitions, named `let`. The initial values are evaluated in order,
    /// inside the scope. Reading a variable before its initialisation raises an error.
    Letrec(Vec<(Rc<Variable>, Self)>, Box<Self>),
    /// A call. Operator and operands are evaluated from left to right.
    Call(Box<Self>, Vec<Self>, Span),
}

/// A procedure's parameters and body.
#[derive(Debug)]
pub struct Lambda {
    /// Its name if it has one, for backtraces.
    pub name: Option<Symbol>,
    /// Its clauses. The first that fits the number of arguments is taken.
    pub clauses: Vec<Clause>,
    /// Its position in the source.
    pub span: Span,
}

/// One clause of a procedure.
#[derive(Debug)]
pub struct Clause {
    /// Required parameters.
    pub required: Vec<Rc<Variable>>,
    /// The parameter that receives the remaining arguments as a list.
    pub rest: Option<Rc<Variable>>,
    /// The body.
    pub body: Core,
}
