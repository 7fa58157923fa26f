//! Multiple values: `let-values`, `let*-values`, `receive`, `define-values`.

use super::binding::{Formals, pairs};
use super::{Core, Expander, Result, build, malformed, parts, rest};
use crate::datum::{Datum, Home, Span};
use crate::error::SyntaxError;
use std::rc::Rc;

impl Expander<'_> {
    /// `expression` as a procedure without arguments.
    pub(super) fn thunk(&mut self, expression: &Datum, home: Home) -> Result {
        let outer = self.enter_lambda();
        let body = self.expression(expression, home)?;
        self.lambda = outer;
        Ok(build::procedure(Vec::new(), None, body, expression.span))
    }

    /// Each expression sees only the outer scope. The consumers are nested, so that all expressions
    /// are evaluated before the body.
    #[inline(never)]
    pub(super) fn let_values(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(let-values ((formals expression) ...) body ...)";
        let rest = rest(form, 2, shape)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let (outer, depth) = (self.lambda, self.depth);
        let scope = self.scopes.push(home);
        let mut stages = Vec::new();
        for (formals, expression) in pairs(first, form, shape)? {
            let thunk = self.thunk(expression, home)?;
            self.enter_lambda();
            self.depth += 2;
            stages.push((thunk, self.formals(formals, scope)?, expression.span));
        }
        let body = self.body(body, form, Home::Scope(scope))?;
        (self.lambda, self.depth) = (outer, depth);
        Ok(self.receive_stages(stages, body))
    }

    #[inline(never)]
    pub(super) fn let_star_values(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(let*-values ((formals expression) ...) body ...)";
        let rest = rest(form, 2, shape)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let (outer, depth) = (self.lambda, self.depth);
        let mut home = home;
        let mut stages = Vec::new();
        for (formals, expression) in pairs(first, form, shape)? {
            let thunk = self.thunk(expression, home)?;
            self.enter_lambda();
            self.depth += 2;
            let scope = self.scopes.push(home);
            stages.push((thunk, self.formals(formals, scope)?, expression.span));
            home = Home::Scope(scope);
        }
        let body = self.body(body, form, home)?;
        (self.lambda, self.depth) = (outer, depth);
        Ok(self.receive_stages(stages, body))
    }

    /// `(receive formals expression body ...)`, SRFI 8.
    #[inline(never)]
    pub(super) fn receive(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(receive formals expression body ...)";
        let operands = parts(form, 3, None, shape)?;
        let thunk = self.thunk(operands[1], home)?;
        let body = form.as_pair().and_then(|(_, rest)| rest.as_pair());
        let Some((_, body)) = body.and_then(|(_, rest)| rest.as_pair()) else {
            return Err(malformed(form, shape));
        };
        let outer = self.enter_lambda();
        let scope = self.scopes.push(home);
        let formals = self.formals(operands[0], scope)?;
        let body = self.body(body, form, Home::Scope(scope))?;
        self.lambda = outer;
        Ok(self.receive_stages(vec![(thunk, formals, form.span)], body))
    }

    fn receive_stages(&self, stages: Vec<(Core, Formals, Span)>, body: Core) -> Core {
        stages.into_iter().rev().fold(body, |body, (thunk, formals, span)| {
            let consumer = build::procedure(formals.required, formals.rest, body, span);
            build::runtime_call(self.world, "%call-with-values", vec![thunk, consumer], span)
        })
    }

    /// The values of `expression` as a list. Requires exactly `count` values unless `has_rest`.
    pub(super) fn values_as_list(
        &mut self,
        count: usize,
        has_rest: bool,
        expression: &Datum,
        home: Home,
    ) -> Result {
        let span = expression.span;
        let thunk = self.thunk(expression, home)?;
        let required: Vec<_> = (0..count).map(|_| build::temporary("value")).collect();
        let rest = has_rest.then(|| build::temporary("values"));
        let mut list = match &rest {
            Some(rest) => build::local(rest, span),
            None => Core::Constant(Datum::nil(span)),
        };
        for value in required.iter().rev() {
            let pair = vec![build::local(value, span), list];
            list = build::runtime_call(self.world, "%cons", pair, span);
        }
        let consumer = build::procedure(required, rest, list, span);
        Ok(build::runtime_call(self.world, "%call-with-values", vec![thunk, consumer], span))
    }

    /// `define-values` at top level. The consumer of the values defines the names.
    pub(super) fn define_values_top(&mut self, form: &Datum, home: Home) -> Result {
        let (formals, expression) = parse_define_values(form)?;
        let span = form.span;
        let thunk = self.thunk(expression, home)?;
        let mut definitions = Vec::new();
        let mut required = Vec::new();
        let mut define = |expander: &mut Self, name: &Datum| {
            let variable = build::temporary("value");
            let global = expander.define_global(name)?;
            let value = Box::new(build::local(&variable, span));
            definitions.push(Core::DefineGlobal(global, value, span));
            Ok::<_, SyntaxError>(variable)
        };
        for name in formals.elements() {
            required.push(define(self, name)?);
        }
        let tail = formals.elements_tail();
        let rest = if tail.is_nil() { None } else { Some(define(self, tail)?) };
        definitions.push(Core::Unspecified);
        let consumer = build::procedure(required, rest, build::sequence(definitions), span);
        let call = vec![thunk, consumer];
        Ok(build::runtime_call(self.world, "%call-with-values", call, span))
    }
}

/// The formals and the expression of a `define-values`.
pub(super) fn parse_define_values(form: &Datum) -> Result<(&Datum, &Datum)> {
    let parts = parts(form, 2, Some(2), "(define-values formals expression)")?;
    Ok((parts[0], parts[1]))
}

impl core::fmt::Debug for Formals {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names: Vec<_> = self.required.iter().map(|v| Rc::as_ref(v).name).collect();
        write!(f, "{names:?} . {:?}", self.rest.as_ref().map(|rest| rest.name))
    }
}
