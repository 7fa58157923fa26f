//! Forms that are expanded to calls of procedures of the system: `delay`, `parameterize`, `guard`,
//! `assert`.
//!
//! ```text
//! (delay e)                        (%delay-force (lambda () (%make-promise #t e)))
//! (delay-force e)                  (%delay-force (lambda () e)): the thunk returns a promise
//! (parameterize ((p v) ...) b ...) (%parameterize (list (%cons p v) ...) (lambda () b ...))
//! (guard (e clause ...) b ...)     (%with-guard (lambda (e again)
//!                                                 (cond clause ... (else (again))))
//!                                               (lambda () b ...))
//! ```
//!
//! `%with-guard` calls its first argument in the dynamic environment of the `guard`. The arguments
//! of that call are the raised object and a thunk. The thunk returns to the dynamic environment of
//! the original `raise` and raises the object again with `raise-continuable` (R7RS §4.2.7).

use super::binding::pairs;
use super::{Core, Expander, Result, build, malformed, parts, rest};
use crate::datum::{Datum, DatumKind, Home};

impl Expander<'_> {
    #[inline(never)]
    pub(super) fn delay(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 1, Some(1), "(delay expression)")?;
        let span = form.span;
        let outer = self.enter_lambda();
        let value = self.expression(parts[0], home)?;
        self.lambda = outer;
        let done = Core::Constant(Datum::boolean(true, span));
        let promise = build::runtime_call(self.world, "%make-promise", vec![done, value], span);
        let thunk = build::procedure(Vec::new(), None, promise, span);
        Ok(build::runtime_call(self.world, "%delay-force", vec![thunk], span))
    }

    #[inline(never)]
    pub(super) fn delay_force(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 1, Some(1), "(delay-force expression)")?;
        let thunk = self.thunk(parts[0], home)?;
        Ok(build::runtime_call(self.world, "%delay-force", vec![thunk], form.span))
    }

    #[inline(never)]
    pub(super) fn parameterize(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(parameterize ((parameter value) ...) body ...)";
        let rest = rest(form, 2, shape)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let span = form.span;
        let mut bindings = Vec::new();
        for (parameter, value) in pairs(first, form, shape)? {
            let pair = vec![self.expression(parameter, home)?, self.expression(value, home)?];
            bindings.push(build::runtime_call(self.world, "%cons", pair, parameter.span));
        }
        let list = build::runtime_call(self.world, "list", bindings, span);
        let thunk = self.body_thunk(body, form, home)?;
        Ok(build::runtime_call(self.world, "%parameterize", vec![list, thunk], span))
    }

    #[inline(never)]
    pub(super) fn guard(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(guard (variable clause ...) body ...)";
        let rest = rest(form, 2, shape)?;
        let Some((first, body)) = rest.as_pair() else { return Err(malformed(form, shape)) };
        let Some((name, clauses)) = first.proper_list().and_then(|items| {
            let (name, clauses) = items.split_first()?;
            Some((*name, clauses.to_vec()))
        }) else {
            return Err(malformed(form, shape));
        };
        let span = form.span;
        let outer = self.enter_lambda();
        let scope = self.scopes.push(home);
        let condition = self.bind_variable(name, scope, None)?;
        let again = build::temporary("raise-again");
        let reraise = Core::Call(Box::new(build::local(&again, span)), Vec::new(), span);
        let clauses = self.cond_clauses(&clauses, Home::Scope(scope), reraise)?;
        self.lambda = outer;
        let handler = build::procedure(vec![condition, again], None, clauses, span);
        let thunk = self.body_thunk(body, form, home)?;
        Ok(build::runtime_call(self.world, "%with-guard", vec![handler, thunk], span))
    }

    fn body_thunk(&mut self, body: &Datum, form: &Datum, home: Home) -> Result {
        let outer = self.enter_lambda();
        let body = self.body(body, form, home)?;
        self.lambda = outer;
        Ok(build::procedure(Vec::new(), None, body, form.span))
    }

    /// `(assert expression)`. If the expression is false, raises an error that shows it.
    #[inline(never)]
    pub(super) fn assert(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 1, None, "(assert expression)")?;
        let span = form.span;
        let test = self.expression(parts[0], home)?;
        let arguments = vec![
            Core::Constant(Datum::new(DatumKind::String("assertion failed".to_owned()), span)),
            Core::Constant(self.strip(parts[0])?),
        ];
        let failed = build::runtime_call(self.world, "error", arguments, span);
        Ok(build::branch(self.world, test, Core::Unspecified, failed))
    }
}
