//! `lambda` clauses, the `let` family, named `let` and `do`, local macros.

use super::definition::{Definition, Init};
use super::scope::LocalBinding;
use super::{Core, Expander, Local, Result, build, malformed, rest};
use crate::core_form::{Clause, Lambda, Variable};
use crate::datum::{Datum, Home};
use crate::error::SyntaxError;
use crate::special::Special;
use std::rc::Rc;

const LET: &str = "(let ((variable value) ...) body ...)";
const DO: &str = "(do ((variable init [step]) ...) (test expression ...) command ...)";

/// The parameters of a clause.
pub(super) struct Formals {
    pub(super) required: Vec<Rc<Variable>>,
    pub(super) rest: Option<Rc<Variable>>,
}

impl Expander<'_> {
    /// Begins a lambda. The caller later restores `self.lambda` to the value returned here.
    pub(super) fn enter_lambda(&mut self) -> u32 {
        self.lambdas += 1;
        core::mem::replace(&mut self.lambda, self.lambdas)
    }

    /// Binds a fresh variable of the current lambda.
    pub(super) fn bind_variable(
        &mut self,
        name: &Datum,
        scope: u32,
        pending: Option<(u32, u32)>,
    ) -> Result<Rc<Variable>> {
        let Some(identifier) = name.as_identifier() else {
            return Err(SyntaxError::new(name.span, format!("{name} cannot be bound"))
                .expected("an identifier"));
        };
        let variable = build::variable(identifier.symbol());
        let local = Local { variable: Rc::clone(&variable), lambda: self.lambda, pending };
        if self.scopes.bind(scope, identifier, LocalBinding::Variable(local)) {
            return Ok(variable);
        }
        Err(SyntaxError::new(name.span, format!("`{name}` is bound twice"))
            .expected("distinct names in one binding form"))
    }

    pub(super) fn formals(&mut self, formals: &Datum, scope: u32) -> Result<Formals> {
        let mut required = Vec::new();
        let mut elements = formals.elements();
        for name in elements.by_ref() {
            required.push(self.bind_variable(name, scope, None)?);
        }
        let tail = elements.tail();
        let rest = match tail.is_nil() {
            true => None,
            false => Some(self.bind_variable(tail, scope, None)?),
        };
        Ok(Formals { required, rest })
    }

    #[inline(never)]
    pub(super) fn clause(
        &mut self,
        formals: &Datum,
        body: &Datum,
        form: &Datum,
        home: Home,
    ) -> Result<Clause> {
        let outer = self.enter_lambda();
        let scope = self.scopes.push(home);
        let Formals { required, rest } = self.formals(formals, scope)?;
        let body = self.body(body, form, Home::Scope(scope))?;
        self.lambda = outer;
        Ok(Clause { required, rest, body })
    }

    /// `((lambda (x ...) body ...) value ...)` as a `let`, if the numbers of parameters and values
    /// agree.
    pub(super) fn direct_call(
        &mut self,
        lambda: &Datum,
        values: &[&Datum],
        home: Home,
    ) -> Result<Option<Core>> {
        let rest = rest(lambda, 2, "(lambda (parameter ...) body ...)")?;
        let Some((formals, body)) = rest.as_pair() else { return Ok(None) };
        match formals.proper_list() {
            Some(names) if names.len() == values.len() => {
                let pairs: Vec<_> = names.into_iter().zip(values.iter().copied()).collect();
                self.let_of(&pairs, body, lambda, home).map(Some)
            }
            _ => Ok(None),
        }
    }

    #[inline(never)]
    pub(super) fn let_form(&mut self, form: &Datum, home: Home) -> Result {
        let rest = rest(form, 2, LET)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, LET)) };
        if first.is_identifier() {
            return self.named_let(first, body, form, home);
        }
        let pairs = pairs(first, form, LET)?;
        self.let_of(&pairs, body, form, home)
    }

    #[inline(never)]
    fn let_of(
        &mut self,
        pairs: &[(&Datum, &Datum)],
        body: &Datum,
        form: &Datum,
        home: Home,
    ) -> Result {
        let mut values = Vec::with_capacity(pairs.len());
        for (name, value) in pairs {
            values.push(self.named_expression(value, home, name.as_symbol())?);
        }
        let scope = self.scopes.push(home);
        let mut bindings = Vec::with_capacity(pairs.len());
        for ((name, _), value) in pairs.iter().zip(values) {
            bindings.push((self.bind_variable(name, scope, None)?, value));
        }
        let body = self.body(body, form, Home::Scope(scope))?;
        Ok(if bindings.is_empty() { body } else { Core::Let(bindings, Box::new(body)) })
    }

    /// `(let name ((variable init) ...) body ...)`.
    #[inline(never)]
    fn named_let(&mut self, name: &Datum, rest: &Datum, form: &Datum, home: Home) -> Result {
        let shape = "(let name ((variable init) ...) body ...)";
        let Some((bindings, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let pairs = pairs(bindings, form, shape)?;
        let inits: Vec<_> = pairs.iter().map(|(_, init)| *init).collect();
        let inits = self.expressions(&inits, home)?;
        let scope = self.scopes.push(home);
        let variable = self.bind_variable(name, scope, None)?;
        let outer = self.enter_lambda();
        let inner = self.scopes.push(Home::Scope(scope));
        let mut required = Vec::with_capacity(pairs.len());
        for (name, _) in &pairs {
            required.push(self.bind_variable(name, inner, None)?);
        }
        let body = self.body(body, form, Home::Scope(inner))?;
        self.lambda = outer;
        let clauses = vec![Clause { required, rest: None, body }];
        let name = Some(variable.name);
        let lambda = Core::Lambda(Rc::new(Lambda { name, clauses, span: form.span }));
        let call = Core::Call(Box::new(build::local(&variable, form.span)), inits, form.span);
        Ok(Core::Letrec(vec![(variable, lambda)], Box::new(call)))
    }

    #[inline(never)]
    pub(super) fn let_star(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(let* ((variable value) ...) body ...)";
        let rest = rest(form, 2, shape)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let depth = self.depth;
        let mut home = home;
        let mut bindings = Vec::new();
        for (name, value) in pairs(first, form, shape)? {
            self.enter_level(name.span)?;
            let value = self.named_expression(value, home, name.as_symbol())?;
            let scope = self.scopes.push(home);
            bindings.push((self.bind_variable(name, scope, None)?, value));
            home = Home::Scope(scope);
        }
        let mut core = self.body(body, form, home)?;
        for binding in bindings.into_iter().rev() {
            core = Core::Let(vec![binding], Box::new(core));
        }
        self.depth = depth;
        Ok(core)
    }

    /// `letrec` and `letrec*`. Both use the order of evaluation that `letrec*` requires.
    #[inline(never)]
    pub(super) fn letrec(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(letrec ((variable value) ...) body ...)";
        let rest = rest(form, 2, shape)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let scope = self.scopes.push(home);
        let frame = self.begin_definitions();
        let mut definitions = Vec::new();
        for (place, (name, value)) in pairs(first, form, shape)?.into_iter().enumerate() {
            let variable = self.bind_variable(name, scope, Some((frame, place as u32)))?;
            definitions.push(Definition { variable, init: Init::Expression(value.clone()) });
        }
        let home = Home::Scope(scope);
        self.definitions(definitions, frame, home, |expander| expander.body(body, form, home))
    }

    /// `(do ((variable init step) ...) (test result ...) command ...)` as a loop.
    #[inline(never)]
    pub(super) fn do_loop(&mut self, form: &Datum, home: Home) -> Result {
        let rest = rest(form, 2, DO)?;
        let parts: Vec<_> = rest.elements().collect();
        let exit = parts[1].proper_list().filter(|exit| !exit.is_empty());
        let (Some(specs), Some(exit)) = (parts[0].proper_list(), exit) else {
            return Err(malformed(form, DO));
        };
        let specs: Vec<Vec<&Datum>> =
            specs.into_iter().map(|spec| spec.proper_list().unwrap_or_default()).collect();
        if specs.iter().any(|spec| !(2..=3).contains(&spec.len())) {
            return Err(malformed(form, DO));
        }
        let inits: Vec<_> = specs.iter().map(|spec| spec[1]).collect();
        let inits = self.expressions(&inits, home)?;
        let variable = build::temporary("do-loop");
        let outer = self.enter_lambda();
        let scope = self.scopes.push(home);
        let mut required = Vec::with_capacity(specs.len());
        for spec in &specs {
            required.push(self.bind_variable(spec[0], scope, None)?);
        }
        let inner = Home::Scope(scope);
        let test = self.expression(exit[0], inner)?;
        let result = build::sequence(self.expressions(&exit[1..], inner)?);
        let mut again = self.expressions(&parts[2..], inner)?;
        let mut steps = Vec::with_capacity(specs.len());
        for spec in &specs {
            // Without a step the variable keeps its value.
            let step = spec.get(2).unwrap_or(&spec[0]);
            steps.push(self.expression(step, inner)?);
        }
        variable.captured.set(true);
        self.lambda = outer;
        let span = form.span;
        again.push(Core::Call(Box::new(build::local(&variable, span)), steps, span));
        let body = build::branch(self.world, test, result, build::sequence(again));
        let clauses = vec![Clause { required, rest: None, body }];
        let lambda = Core::Lambda(Rc::new(Lambda { name: None, clauses, span }));
        let call = Core::Call(Box::new(build::local(&variable, span)), inits, span);
        Ok(Core::Letrec(vec![(variable, lambda)], Box::new(call)))
    }

    /// `let-syntax` and `letrec-syntax`. The body is a scope of its own.
    #[inline(never)]
    pub(super) fn let_syntax(&mut self, form: &Datum, home: Home, special: Special) -> Result {
        let shape = "(let-syntax ((keyword transformer) ...) body ...)";
        let rest = rest(form, 2, shape)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let scope = self.scopes.push(home);
        let inner = Home::Scope(scope);
        let seen_from = if special == Special::LetSyntax { home } else { inner };
        for (name, spec) in pairs(first, form, shape)? {
            let keyword = self.transformer(spec, seen_from, name)?;
            self.bind_keyword(name, scope, keyword)?;
        }
        self.body(body, form, inner)
    }

    /// The operands of a form such as `begin`, as one sequence.
    pub(super) fn sequence_of(&mut self, forms: &[&Datum], home: Home) -> Result {
        Ok(build::sequence(self.expressions(forms, home)?))
    }
}

/// The `(name value)` pairs of a binding form.
pub(super) fn pairs<'a>(
    bindings: &'a Datum,
    form: &Datum,
    shape: &str,
) -> Result<Vec<(&'a Datum, &'a Datum)>> {
    let Some(bindings) = bindings.proper_list() else { return Err(malformed(form, shape)) };
    bindings
        .into_iter()
        .map(|binding| match binding.proper_list().as_deref() {
            Some([name, value]) => Ok((*name, *value)),
            _ => Err(SyntaxError::new(binding.span, format!("{binding} is no binding"))
                .expected(format!("(variable value), as in {shape}"))),
        })
        .collect()
}
