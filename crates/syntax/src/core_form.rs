//! What the expander hands to the compiler: a handful of core forms, every name resolved.

use super::datum::{Datum, Span};
use super::location::Location;
use crate::symbol::Symbol;
use core::cell::Cell;
use std::rc::Rc;

/// A local variable. One object a binding; identity is the address.
#[derive(Debug)]
pub struct Variable {
    /// Its name, for messages.
    pub name: Symbol,
    /// Whether anything assigns it after its initialisation (`set!`).
    pub mutated: Cell<bool>,
    /// Whether a lambda other than the one that binds it refers to it.
    pub captured: Cell<bool>,
}

/// A core form. `Span`s point to where the user wrote what became this.
#[derive(Debug)]
pub enum Core {
    /// A self-evaluating or quoted datum (aliases already stripped to symbols).
    Constant(Datum),
    /// The unspecified value.
    Unspecified,
    /// A local variable's value.
    Local(Rc<Variable>, Span),
    /// `(set! local value)`.
    SetLocal(Rc<Variable>, Box<Self>, Span),
    /// A top-level variable's value: raises when unbound.
    Global(Location, Span),
    /// `(set! global value)`: raises when unbound.
    SetGlobal(Location, Box<Self>, Span),
    /// `(define global value)`.
    DefineGlobal(Location, Box<Self>, Span),
    /// `(if test then else)`.
    If(Box<Self>, Box<Self>, Box<Self>),
    /// Evaluate in order, value of the last. Never empty.
    Sequence(Vec<Self>),
    /// A procedure; `case-lambda` has several clauses.
    Lambda(Rc<Lambda>),
    /// `let`: inits evaluated outside the scope of the variables.
    Let(Vec<(Rc<Variable>, Self)>, Box<Self>),
    /// `letrec*`, internal definitions, named `let`: inits evaluated in order inside the scope.
    /// Reading a variable before its initialisation raises.
    Letrec(Vec<(Rc<Variable>, Self)>, Box<Self>),
    /// A call. Order of evaluation: left to right.
    Call(Box<Self>, Vec<Self>, Span),
}

/// A procedure's text.
#[derive(Debug)]
pub struct Lambda {
    /// Its name where one is known, for backtraces.
    pub name: Option<Symbol>,
    /// Its clauses, tried in order by number of arguments.
    pub clauses: Vec<Clause>,
    /// Where it stands.
    pub span: Span,
}

/// One clause of a procedure.
#[derive(Debug)]
pub struct Clause {
    /// Required parameters.
    pub required: Vec<Rc<Variable>>,
    /// The parameter that takes the rest as a list.
    pub rest: Option<Rc<Variable>>,
    /// The body.
    pub body: Core,
}
