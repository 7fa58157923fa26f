//! Facts about a core form that the generator needs before it starts: the free variables of each
//! lambda, the variables that are read before their initialisation, and the procedures that are
//! labels.
//!
//! A *label* is a local procedure all of whose uses are calls in tail position of the form that
//! binds it, or of another label of the same group. The loop of a named `let` is an example. A
//! label needs no closure, and calling it is a jump.
//!
//! Tail positions are numbered. Two positions have the same number if returning from one is the
//! same as returning from the other. A lambda's body has a number of its own. If the lambda turns
//! out to be a label, that number is merged with the one of the binding form.

use kyocho_syntax::core_form::{Clause, Core, Lambda, Variable};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Maximum number of levels of nesting that the compiler accepts, so that recursion does not
/// overflow the native stack.
const DEPTH_MAX: usize = 8_000;

/// A form nested too deeply for the compiler.
#[derive(Debug)]
pub(crate) struct TooDeep;

type Tail = usize;

/// Facts about a variable.
#[derive(Debug, Default)]
pub(crate) struct VariableFacts {
    /// It may be read before its initialisation.
    pub(crate) early: bool,
    /// The lambda that it is bound to, if it is never assigned.
    pub(crate) lambda: Option<Rc<Lambda>>,
    /// The lambda has no free variables except itself, so one closure serves all uses.
    pub(crate) constant: bool,
    /// The lambda is a label.
    pub(crate) label: bool,
    initialised: bool,
    escapes: bool,
    calls: Vec<Option<Tail>>,
}

/// Facts about a lambda.
#[derive(Debug, Default)]
pub(crate) struct LambdaFacts {
    /// Its free variables from enclosing procedures, in order of first use. Constants are left out.
    /// So is the variable that the lambda is bound to, unless it may be read early.
    pub(crate) free: Vec<Rc<Variable>>,
    tail: Tail,
}

/// The facts of one top-level form.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    variables: HashMap<*const Variable, VariableFacts>,
    lambdas: HashMap<*const Lambda, LambdaFacts>,
}

impl Analysis {
    /// Analyses a top-level form.
    pub(crate) fn of(core: &Core) -> Result<Self, TooDeep> {
        let mut analyser = Analyser {
            facts: Self::default(),
            tails: vec![0],
            scopes: vec![Scope::default()],
            depth: 0,
        };
        analyser.visit(core, Some(0))?;
        Ok(analyser.facts)
    }

    pub(crate) fn variable(&self, variable: &Rc<Variable>) -> Option<&VariableFacts> {
        self.variables.get(&Rc::as_ptr(variable))
    }

    pub(crate) fn is_label(&self, variable: &Rc<Variable>) -> bool {
        self.variable(variable).is_some_and(|facts| facts.label)
    }

    pub(crate) fn is_early(&self, variable: &Rc<Variable>) -> bool {
        self.variable(variable).is_some_and(|facts| facts.early)
    }

    pub(crate) fn is_constant(&self, variable: &Rc<Variable>) -> bool {
        self.variable(variable).is_some_and(|facts| facts.constant)
    }

    /// The lambda that the variable is bound to, if it never changes.
    pub(crate) fn known(&self, variable: &Rc<Variable>) -> Option<&Rc<Lambda>> {
        self.variable(variable)?.lambda.as_ref()
    }

    pub(crate) fn free(&self, lambda: &Rc<Lambda>) -> &[Rc<Variable>] {
        self.lambdas.get(&Rc::as_ptr(lambda)).map_or(&[], |facts| &facts.free)
    }
}

/// The clause of a lambda that has only one, with a fixed number of arguments.
pub(crate) fn fixed_clause(lambda: &Lambda) -> Option<&Clause> {
    match lambda.clauses.as_slice() {
        [clause] if clause.rest.is_none() => Some(clause),
        _ => None,
    }
}

#[derive(Default)]
struct Scope {
    order: Vec<Rc<Variable>>,
    seen: HashSet<*const Variable>,
    bound: HashSet<*const Variable>,
}

struct Analyser {
    facts: Analysis,
    tails: Vec<Tail>,
    scopes: Vec<Scope>,
    depth: usize,
}

impl Analyser {
    fn fresh_tail(&mut self) -> Tail {
        self.tails.push(self.tails.len());
        self.tails.len() - 1
    }

    fn find(&self, mut tail: Tail) -> Tail {
        while self.tails[tail] != tail {
            tail = self.tails[tail];
        }
        tail
    }

    fn facts_of(&mut self, variable: &Rc<Variable>) -> &mut VariableFacts {
        self.facts.variables.entry(Rc::as_ptr(variable)).or_default()
    }

    fn bind(&mut self, variable: &Rc<Variable>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.bound.insert(Rc::as_ptr(variable));
        }
    }

    fn refer(&mut self, variable: &Rc<Variable>) {
        let facts = self.facts_of(variable);
        if facts.constant {
            return;
        }
        let Some(scope) = self.scopes.last_mut() else { return };
        if scope.seen.insert(Rc::as_ptr(variable)) {
            scope.order.push(Rc::clone(variable));
        }
    }

    /// Records an assignment, or a use that is not a call.
    fn touch(&mut self, variable: &Rc<Variable>) {
        let facts = self.facts_of(variable);
        facts.escapes = true;
        facts.early |= !facts.initialised;
        self.refer(variable);
    }

    fn visit_all(&mut self, forms: &[Core]) -> Result<(), TooDeep> {
        forms.iter().try_for_each(|form| self.visit(form, None))
    }

    fn visit(&mut self, core: &Core, tail: Option<Tail>) -> Result<(), TooDeep> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TooDeep);
        }
        match core {
            Core::Constant(_) | Core::Unspecified | Core::Global(..) => {}
            Core::Local(variable, _) => self.touch(variable),
            Core::SetLocal(variable, value, _) => {
                self.visit(value, None)?;
                self.touch(variable);
            }
            Core::SetGlobal(_, value, _) | Core::DefineGlobal(_, value, _) => {
                self.visit(value, None)?;
            }
            Core::If(test, consequent, alternative) => {
                self.visit(test, None)?;
                self.visit(consequent, tail)?;
                self.visit(alternative, tail)?;
            }
            Core::Sequence(forms) => {
                if let Some((last, others)) = forms.split_last() {
                    self.visit_all(others)?;
                    self.visit(last, tail)?;
                }
            }
            Core::Lambda(lambda) => self.visit_lambda(lambda, None)?,
            Core::Let(bindings, body) => self.visit_let(bindings, body, tail)?,
            Core::Letrec(bindings, body) => self.visit_letrec(bindings, body, tail)?,
            Core::Call(callee, arguments, _) => self.visit_call(callee, arguments, tail)?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn visit_call(
        &mut self,
        callee: &Core,
        arguments: &[Core],
        tail: Option<Tail>,
    ) -> Result<(), TooDeep> {
        let Core::Local(variable, _) = callee else {
            self.visit(callee, None)?;
            return self.visit_all(arguments);
        };
        self.visit_all(arguments)?;
        let facts = self.facts_of(variable);
        let fits = facts
            .lambda
            .as_ref()
            .and_then(|lambda| fixed_clause(lambda))
            .is_some_and(|clause| clause.required.len() == arguments.len());
        facts.escapes |= !fits;
        facts.early |= !facts.initialised;
        facts.calls.push(tail);
        self.refer(variable);
        Ok(())
    }

    fn visit_lambda(
        &mut self,
        lambda: &Rc<Lambda>,
        name: Option<&Rc<Variable>>,
    ) -> Result<(), TooDeep> {
        let tail = self.fresh_tail();
        self.scopes.push(Scope::default());
        for clause in &lambda.clauses {
            for variable in clause.required.iter().chain(&clause.rest) {
                self.bind(variable);
                self.facts_of(variable).initialised = true;
            }
            self.visit(&clause.body, Some(tail))?;
        }
        let scope = self.scopes.pop().unwrap_or_default();
        let itself = name.map(Rc::as_ptr);
        let free: Vec<_> = scope
            .order
            .into_iter()
            .filter(|variable| {
                let pointer = Rc::as_ptr(variable);
                !scope.bound.contains(&pointer) && Some(pointer) != itself
            })
            .collect();
        for variable in &free {
            self.refer(variable);
        }
        self.facts.lambdas.insert(Rc::as_ptr(lambda), LambdaFacts { free, tail });
        Ok(())
    }

    /// Binds a variable. Records its lambda if it is bound to one and never assigned.
    fn announce(&mut self, variable: &Rc<Variable>, init: &Core) {
        self.bind(variable);
        let lambda = match init {
            Core::Lambda(lambda) if !variable.mutated.get() => Some(Rc::clone(lambda)),
            _ => None,
        };
        self.facts_of(variable).lambda = lambda;
    }

    fn visit_init(&mut self, variable: &Rc<Variable>, init: &Core) -> Result<(), TooDeep> {
        match init {
            Core::Lambda(lambda) if !variable.mutated.get() => {
                // A procedure refers to itself through the callee register. A variable that may be
                // read early is in a cell, which the procedure captures like any other variable.
                let itself = Some(variable).filter(|_| !self.facts.is_early(variable));
                self.visit_lambda(lambda, itself)?;
                let empty = self.facts.free(lambda).is_empty();
                let facts = self.facts_of(variable);
                facts.constant = empty && !facts.early;
                Ok(())
            }
            _ => self.visit(init, None),
        }
    }

    fn visit_let(
        &mut self,
        bindings: &[(Rc<Variable>, Core)],
        body: &Core,
        tail: Option<Tail>,
    ) -> Result<(), TooDeep> {
        for (variable, init) in bindings {
            self.visit_init(variable, init)?;
        }
        for (variable, init) in bindings {
            self.announce(variable, init);
            self.facts_of(variable).initialised = true;
        }
        let tail = tail.unwrap_or_else(|| self.fresh_tail());
        self.visit(body, Some(tail))?;
        self.find_labels(bindings, tail);
        Ok(())
    }

    fn visit_letrec(
        &mut self,
        bindings: &[(Rc<Variable>, Core)],
        body: &Core,
        tail: Option<Tail>,
    ) -> Result<(), TooDeep> {
        for (variable, init) in bindings {
            self.announce(variable, init);
        }
        let mut rest = bindings;
        while !rest.is_empty() {
            let group = lambda_run(rest);
            for (variable, _) in &rest[..group] {
                self.facts_of(variable).initialised = true;
            }
            for (variable, init) in &rest[..group.max(1)] {
                self.visit_init(variable, init)?;
                self.facts_of(variable).initialised = true;
            }
            rest = &rest[group.max(1)..];
        }
        let tail = tail.unwrap_or_else(|| self.fresh_tail());
        self.visit(body, Some(tail))?;
        self.find_labels(bindings, tail);
        Ok(())
    }

    /// Finds the bindings that are labels: starts with all candidates and removes those that do not
    /// qualify, until no further one is removed.
    fn find_labels(&mut self, bindings: &[(Rc<Variable>, Core)], tail: Tail) {
        let mut labels: Vec<(*const Variable, Tail)> = Vec::new();
        for (variable, _) in bindings {
            let Some(facts) = self.facts.variable(variable) else { continue };
            let Some(lambda) = &facts.lambda else { continue };
            let usable = !facts.escapes && !facts.early && fixed_clause(lambda).is_some();
            let Some(lambda_facts) = self.facts.lambdas.get(&Rc::as_ptr(lambda)) else { continue };
            if usable {
                labels.push((Rc::as_ptr(variable), lambda_facts.tail));
            }
        }
        loop {
            let allowed: HashSet<Tail> =
                labels.iter().map(|&(_, own)| own).chain([tail]).map(|t| self.find(t)).collect();
            let before = labels.len();
            labels.retain(|(variable, _)| {
                self.facts.variables[variable]
                    .calls
                    .iter()
                    .all(|call| call.is_some_and(|call| allowed.contains(&self.find(call))))
            });
            if labels.len() == before {
                break;
            }
        }
        for (variable, own) in labels {
            let own = self.find(own);
            self.tails[own] = self.find(tail);
            if let Some(facts) = self.facts.variables.get_mut(&variable) {
                facts.label = true;
                facts.constant = false;
            }
        }
    }
}

/// How many of the first bindings are lambdas that are never assigned. Their closures are made
/// together.
pub(crate) fn lambda_run(bindings: &[(Rc<Variable>, Core)]) -> usize {
    bindings
        .iter()
        .take_while(|(variable, init)| matches!(init, Core::Lambda(_)) && !variable.mutated.get())
        .count()
}
