//! Special forms of the deep-binding evaluator: how each starts, and what its frames do with a
//! value. Their names cannot be shadowed.

use super::{Evaluator, Frame, List, Next, Outcome, assign};
use crate::atoms::{self, Role};
use crate::error::{Cause, Stop, stop};
use kyocho_heap::value::Value;

/// A special form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Quote,
    Lambda,
    If,
    Cond,
    Let,
    LetStar,
    Letrec,
    Define,
    Set,
    Begin,
    And,
    Or,
}

use Special::{And, Begin, Cond, Define, If, Lambda, Let, LetStar, Letrec, Or, Quote, Set};

const ALL: [Special; 12] =
    [Quote, Lambda, If, Cond, Let, LetStar, Letrec, Define, Set, Begin, And, Or];

/// The names of the special forms, in the order of their numbers.
pub(super) const NAMES: [&str; 12] = [
    "quote", "lambda", "if", "cond", "let", "let*", "letrec", "define", "set!", "begin", "and",
    "or",
];

fn pair_of(form: &'static str, value: Value) -> Result<(Value, Value), Stop> {
    value.uncons().ok_or_else(|| Stop::from(Cause::Malformed(form)))
}

/// `(name value)` as name and value.
fn binding_of(form: &'static str, binding: Value) -> Result<(Value, Value), Stop> {
    let (atom, rest) = pair_of(form, binding)?;
    let (value, _) = pair_of(form, rest)?;
    if atoms::is_atom(atom) { Ok((atom, value)) } else { stop(Cause::Malformed(form)) }
}

/// How a `cond` continues.
enum Clause {
    Value,
    Body(Value),
    Next(Value),
}

/// How a `cond` continues after the value of its first clause's test.
fn take_clause(clauses: Value, value: Value) -> Result<Clause, Stop> {
    let (clause, rest) = pair_of("cond", clauses)?;
    let (_, body) = pair_of("cond", clause)?;
    Ok(match (value.is_true(), body.is_nil()) {
        (false, _) => Clause::Next(rest),
        (true, true) => Clause::Value,
        (true, false) => Clause::Body(body),
    })
}

/// How an `if` continues after the value of its test.
fn choose(branches: Value, environment: Value, value: Value) -> Outcome {
    let (then, otherwise) = pair_of("if", branches)?;
    if value.is_true() {
        return Ok(Next::Eval(then, environment));
    }
    Ok(match otherwise.uncons() {
        Some((otherwise, _)) => Next::Eval(otherwise, environment),
        None => Next::Give(Value::UNSPECIFIED),
    })
}

/// Whether a list with this first element is a quotation.
#[inline]
pub(super) fn is_quote(operator: Value) -> bool {
    atoms::role(operator) == Role::Special(Quote as usize)
}

/// The parts of a definition after `define`.
fn definition_form(expression: Value) -> Option<Value> {
    let (operator, form) = expression.uncons()?;
    (atoms::role(operator) == Role::Special(Define as usize)).then_some(form)
}

/// The name in `(name value)` or `((name . parameters) body)`.
fn defined_name(form: Value) -> Result<Value, Stop> {
    let (target, _) = pair_of("define", form)?;
    let name = target.car().unwrap_or(target);
    if atoms::is_atom(name) { Ok(name) } else { stop(Cause::Malformed("define")) }
}

impl Evaluator<'_> {
    pub(super) fn eval_special(
        &mut self,
        number: usize,
        form: Value,
        environment: Value,
    ) -> Outcome {
        let special = ALL[number];
        let name = NAMES[number];
        match special {
            Quote => Ok(Next::Give(pair_of(name, form)?.0)),
            Lambda => {
                let (parameters, body) = pair_of(name, form)?;
                self.closure(parameters, body, environment).map(Next::Give)
            }
            If => {
                let (test, branches) = pair_of(name, form)?;
                if let Some(value) = self.value_now(test, environment)? {
                    return choose(branches, environment, value);
                }
                self.push(Frame::If { branches, environment })?;
                Ok(Next::Eval(test, environment))
            }
            Cond => self.eval_clauses(form, environment),
            Let => self.eval_let(form, environment),
            LetStar => {
                let (bindings, body) = pair_of(name, form)?;
                self.next_let_star(bindings, environment, body)
            }
            Letrec => self.eval_letrec(form, environment),
            Define => self.eval_define(form, environment),
            Set => {
                let (atom, value) = binding_of(name, form)?;
                self.push(Frame::Set { atom, environment })?;
                Ok(Next::Eval(value, environment))
            }
            Begin => self.eval_sequence(form, environment),
            And | Or => match form.uncons() {
                Some((first, rest)) => self.eval_connective(special, first, rest, environment),
                None => Ok(Next::Give(Value::boolean(special == And))),
            },
        }
    }

    fn eval_sequence(&mut self, body: Value, environment: Value) -> Outcome {
        let Some((first, rest)) = body.uncons() else {
            return Ok(Next::Give(Value::UNSPECIFIED));
        };
        if !rest.is_nil() {
            self.push(Frame::Sequence { rest, environment })?;
        }
        Ok(Next::Eval(first, environment))
    }

    fn eval_clauses(&mut self, mut clauses: Value, environment: Value) -> Outcome {
        while let Some((clause, _)) = clauses.uncons() {
            let (test, body) = pair_of("cond", clause)?;
            if atoms::is_atom(test) && atoms::name(test).name() == "else" {
                return self.eval_sequence(body, environment);
            }
            let Some(value) = self.value_now(test, environment)? else {
                self.push(Frame::Cond { clauses, environment })?;
                return Ok(Next::Eval(test, environment));
            };
            match take_clause(clauses, value)? {
                Clause::Value => return Ok(Next::Give(value)),
                Clause::Body(body) => return self.eval_sequence(body, environment),
                Clause::Next(rest) => clauses = rest,
            }
        }
        Ok(Next::Give(Value::UNSPECIFIED))
    }

    fn eval_connective(
        &mut self,
        special: Special,
        first: Value,
        rest: Value,
        environment: Value,
    ) -> Outcome {
        if !rest.is_nil() {
            self.push(Frame::Connective { special, rest, environment })?;
        }
        Ok(Next::Eval(first, environment))
    }

    fn eval_let(&mut self, form: Value, environment: Value) -> Outcome {
        let (bindings, body) = pair_of("let", form)?;
        if atoms::is_atom(bindings) {
            return self.eval_named_let(bindings, body, environment);
        }
        self.next_let(bindings, environment, environment, body)
    }

    fn next_let(&mut self, bindings: Value, outer: Value, inner: Value, body: Value) -> Outcome {
        let Some((binding, _)) = bindings.uncons() else {
            return self.eval_body(body, inner);
        };
        let (_, value) = binding_of("let", binding)?;
        self.push(Frame::Let { bindings, environment: outer, inner, body })?;
        Ok(Next::Eval(value, outer))
    }

    fn next_let_star(&mut self, bindings: Value, environment: Value, body: Value) -> Outcome {
        let Some((binding, _)) = bindings.uncons() else {
            return self.eval_body(body, environment);
        };
        let (_, value) = binding_of("let*", binding)?;
        self.push(Frame::LetStar { bindings, environment, body })?;
        Ok(Next::Eval(value, environment))
    }

    /// `(let name ((variable value) ...) body)`: a call of a closure whose a-list binds its own
    /// name.
    fn eval_named_let(&mut self, name: Value, form: Value, environment: Value) -> Outcome {
        let (mut bindings, body) = pair_of("let", form)?;
        let (mut parameters, mut values) = (Vec::new(), Vec::new());
        while let Some((binding, rest)) = bindings.uncons() {
            let (atom, value) = binding_of("let", binding)?;
            parameters.push(atom);
            values.push(value);
            bindings = rest;
        }
        let parameters = self.list(&parameters)?;
        let operands = self.list(&values)?;
        let inner = self.bind_one(name, Value::UNBOUND, environment)?;
        let closure = self.closure(parameters, body, inner)?;
        assign(name, closure, inner)?;
        self.eval_operands(closure, operands, environment, List::EMPTY)
    }

    fn eval_letrec(&mut self, form: Value, environment: Value) -> Outcome {
        let (bindings, body) = pair_of("letrec", form)?;
        let (mut inner, mut rest) = (environment, bindings);
        while let Some((binding, after)) = rest.uncons() {
            let (atom, _) = binding_of("letrec", binding)?;
            inner = self.bind_one(atom, Value::UNBOUND, inner)?;
            rest = after;
        }
        self.next_letrec(bindings, inner, body)
    }

    fn next_letrec(&mut self, bindings: Value, environment: Value, body: Value) -> Outcome {
        let Some((binding, _)) = bindings.uncons() else {
            return self.eval_body(body, environment);
        };
        let (_, value) = binding_of("letrec", binding)?;
        self.push(Frame::Letrec { bindings, environment, body })?;
        Ok(Next::Eval(value, environment))
    }

    /// A body. The definitions at its beginning are bound first, so that they see each other. The
    /// value is that of the last expression.
    pub(super) fn eval_body(&mut self, body: Value, environment: Value) -> Outcome {
        if body.car().is_none_or(|first| definition_form(first).is_none()) {
            return self.eval_sequence(body, environment);
        }
        let (mut inner, mut rest) = (environment, body);
        while let Some((expression, after)) = rest.uncons()
            && let Some(form) = definition_form(expression)
        {
            inner = self.bind_one(defined_name(form)?, Value::UNBOUND, inner)?;
            rest = after;
        }
        self.next_definition(body, inner)
    }

    fn next_definition(&mut self, body: Value, environment: Value) -> Outcome {
        let Some((expression, _)) = body.uncons() else {
            return Ok(Next::Give(Value::UNSPECIFIED));
        };
        match definition_form(expression) {
            Some(form) => {
                self.push(Frame::Definition { body, environment })?;
                self.defined_value(form, environment)
            }
            None => self.eval_sequence(body, environment),
        }
    }

    pub(super) fn list(&mut self, items: &[Value]) -> Result<Value, Stop> {
        items.iter().rev().try_fold(Value::NIL, |list, &item| self.cons(item, list))
    }

    /// Evaluates the value in `(define name value)` or `(define (name . parameters) body)`.
    fn defined_value(&mut self, form: Value, environment: Value) -> Outcome {
        let (target, rest) = pair_of("define", form)?;
        match target.uncons() {
            Some((_, parameters)) => self.closure(parameters, rest, environment).map(Next::Give),
            None => Ok(Next::Eval(pair_of("define", rest)?.0, environment)),
        }
    }

    /// A definition at top level: sets the atom's global value. Definitions at the beginning of a
    /// body do not get here. One in any other position has no scope, and is an error.
    fn eval_define(&mut self, form: Value, environment: Value) -> Outcome {
        if !environment.is_nil() {
            return stop(Cause::Malformed("define: not at the beginning of a body"));
        }
        self.push(Frame::Define { atom: defined_name(form)? })?;
        self.defined_value(form, environment)
    }

    /// Continues a frame with the value that it waited for.
    pub(super) fn give(&mut self, frame: Frame, value: Value) -> Outcome {
        match frame {
            Frame::Operator { operands, environment } => {
                self.eval_operands(value, operands, environment, List::EMPTY)
            }
            Frame::Operand { rest, environment, operator, made } => {
                self.give_operand(operator, (rest, environment), made, value)
            }
            Frame::Sequence { rest, environment } => self.eval_sequence(rest, environment),
            Frame::If { branches, environment } => choose(branches, environment, value),
            Frame::Cond { clauses, environment } => match take_clause(clauses, value)? {
                Clause::Value => Ok(Next::Give(value)),
                Clause::Body(body) => self.eval_sequence(body, environment),
                Clause::Next(rest) => self.eval_clauses(rest, environment),
            },
            Frame::Connective { special, rest, environment } => {
                if value.is_true() != (special == And) {
                    return Ok(Next::Give(value));
                }
                let (next, rest) = pair_of("and", rest)?;
                self.eval_connective(special, next, rest, environment)
            }
            Frame::Let { bindings, environment, inner, body } => {
                let (binding, rest) = pair_of("let", bindings)?;
                let inner = self.bind_one(binding_of("let", binding)?.0, value, inner)?;
                self.next_let(rest, environment, inner, body)
            }
            Frame::LetStar { bindings, environment, body } => {
                let (binding, rest) = pair_of("let*", bindings)?;
                let inner = self.bind_one(binding_of("let*", binding)?.0, value, environment)?;
                self.next_let_star(rest, inner, body)
            }
            Frame::Letrec { bindings, environment, body } => {
                let (binding, rest) = pair_of("letrec", bindings)?;
                assign(binding_of("letrec", binding)?.0, value, environment)?;
                self.next_letrec(rest, environment, body)
            }
            Frame::Definition { body, environment } => {
                let (definition, rest) = pair_of("define", body)?;
                let (_, form) = pair_of("define", definition)?;
                assign(defined_name(form)?, value, environment)?;
                self.next_definition(rest, environment)
            }
            Frame::Set { atom, environment } => {
                assign(atom, value, environment)?;
                Ok(Next::Give(Value::UNSPECIFIED))
            }
            Frame::Define { atom } => {
                atoms::set_global(atom, value);
                Ok(Next::Give(Value::UNSPECIFIED))
            }
        }
    }
}
