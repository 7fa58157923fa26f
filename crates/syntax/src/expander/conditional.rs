//! `if`, `cond`, `case`, `and`, `or`, `when`, `unless`, `and-let*`.

use super::{Core, Expander, Result, build, malformed, parts};
use crate::core_form::Variable;
use crate::datum::{Datum, DatumKind, Home, NumberLiteral, Span};
use crate::error::SyntaxError;
use crate::number::is_fixnum;
use crate::special::Special;
use std::rc::Rc;

const COND: &str = "(cond (test expression ...) ... (else expression ...))";
const CASE: &str = "(case key ((datum ...) expression ...) ... (else expression ...))";
/// Maximum number of data of one `case` clause that are compared in line.
const INLINE_DATA_MAX: usize = 8;

/// One clause of `cond`, expanded.
enum CondClause {
    Test(Core, Span),
    Body(Core, Core),
    Receiver(Core, Core, Span),
}

impl Expander<'_> {
    #[inline(never)]
    pub(super) fn conditional(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 2, Some(3), "(if test then [else])")?;
        let test = self.expression(parts[0], home)?;
        let then = self.expression(parts[1], home)?;
        let otherwise = match parts.get(2) {
            Some(otherwise) => self.expression(otherwise, home)?,
            None => Core::Unspecified,
        };
        Ok(build::branch(self.world, test, then, otherwise))
    }

    #[inline(never)]
    pub(super) fn when(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 2, None, "(when test expression ...)")?;
        let test = self.expression(parts[0], home)?;
        let body = self.sequence_of(&parts[1..], home)?;
        Ok(build::branch(self.world, test, body, Core::Unspecified))
    }

    #[inline(never)]
    pub(super) fn unless(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 2, None, "(unless test expression ...)")?;
        let test = self.expression(parts[0], home)?;
        let body = self.sequence_of(&parts[1..], home)?;
        Ok(build::branch(self.world, test, Core::Unspecified, body))
    }

    #[inline(never)]
    pub(super) fn and(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 0, None, "(and expression ...)")?;
        let mut cores = self.deeper_and_deeper(&parts, home)?;
        let Some(mut core) = cores.pop() else {
            return Ok(Core::Constant(Datum::boolean(true, form.span)));
        };
        while let Some(test) = cores.pop() {
            let failed = Core::Constant(Datum::boolean(false, form.span));
            core = build::branch(self.world, test, core, failed);
        }
        Ok(core)
    }

    #[inline(never)]
    pub(super) fn or(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 0, None, "(or expression ...)")?;
        let mut cores = self.deeper_and_deeper(&parts, home)?;
        let Some(mut core) = cores.pop() else {
            return Ok(Core::Constant(Datum::boolean(false, form.span)));
        };
        while let Some(test) = cores.pop() {
            core = self.or_else(test, core, form.span);
        }
        Ok(core)
    }

    /// `(let ((t test)) (if t t otherwise))`.
    fn or_else(&self, test: Core, otherwise: Core, span: Span) -> Core {
        let variable = build::temporary("t");
        let body = build::branch(
            self.world,
            build::local(&variable, span),
            build::local(&variable, span),
            otherwise,
        );
        Core::Let(vec![(variable, test)], Box::new(body))
    }

    /// Expands forms, each of which will be nested inside the one before.
    fn deeper_and_deeper(&mut self, forms: &[&Datum], home: Home) -> Result<Vec<Core>> {
        let depth = self.depth;
        let mut cores = Vec::with_capacity(forms.len());
        for form in forms {
            cores.push(self.expression(form, home)?);
            self.enter_level(form.span)?;
        }
        self.depth = depth;
        Ok(cores)
    }

    #[inline(never)]
    pub(super) fn cond(&mut self, form: &Datum, home: Home) -> Result {
        let clauses = parts(form, 1, None, COND)?;
        self.cond_clauses(&clauses, home, Core::Unspecified)
    }

    /// The clauses of `cond` or `guard`. `otherwise` applies if no test is true and there is no
    /// `else`.
    #[inline(never)]
    pub(super) fn cond_clauses(
        &mut self,
        clauses: &[&Datum],
        home: Home,
        otherwise: Core,
    ) -> Result {
        let depth = self.depth;
        let mut otherwise = otherwise;
        let mut expanded = Vec::with_capacity(clauses.len());
        for (index, clause) in clauses.iter().enumerate() {
            self.enter_level(clause.span)?;
            let Some(items) = clause.proper_list().filter(|items| !items.is_empty()) else {
                return Err(SyntaxError::in_form(clause, "no clause").expected(COND));
            };
            if self.is_special(items[0], Special::Else, home) {
                check_else(clause, &items, index + 1 == clauses.len())?;
                otherwise = self.sequence_of(&items[1..], home)?;
                break;
            }
            expanded.push(self.cond_clause(clause, &items, home)?);
        }
        self.depth = depth;
        Ok(expanded.into_iter().rev().fold(otherwise, |rest, clause| match clause {
            CondClause::Test(test, span) => self.or_else(test, rest, span),
            CondClause::Body(test, body) => build::branch(self.world, test, body, rest),
            CondClause::Receiver(test, receiver, span) => {
                self.test_and_apply(test, receiver, rest, span)
            }
        }))
    }

    fn cond_clause(&mut self, clause: &Datum, items: &[&Datum], home: Home) -> Result<CondClause> {
        let test = self.expression(items[0], home)?;
        if items.len() == 1 {
            return Ok(CondClause::Test(test, clause.span));
        }
        if self.is_special(items[1], Special::Arrow, home) {
            if items.len() != 3 {
                return Err(SyntaxError::in_form(clause, "a malformed => clause")
                    .expected("(test => procedure)"));
            }
            let receiver = self.expression(items[2], home)?;
            return Ok(CondClause::Receiver(test, receiver, clause.span));
        }
        Ok(CondClause::Body(test, self.sequence_of(&items[1..], home)?))
    }

    /// `(let ((t test)) (if t (receiver t) otherwise))`.
    fn test_and_apply(&self, test: Core, receiver: Core, otherwise: Core, span: Span) -> Core {
        let variable = build::temporary("t");
        let call = Core::Call(Box::new(receiver), vec![build::local(&variable, span)], span);
        let body = build::branch(self.world, build::local(&variable, span), call, otherwise);
        Core::Let(vec![(variable, test)], Box::new(body))
    }

    #[inline(never)]
    pub(super) fn case(&mut self, form: &Datum, home: Home) -> Result {
        let operands = parts(form, 2, None, CASE)?;
        let key = build::temporary("key");
        let value = self.expression(operands[0], home)?;
        let depth = self.depth;
        let mut otherwise = Core::Unspecified;
        let mut expanded = Vec::new();
        for (index, clause) in operands[1..].iter().enumerate() {
            self.enter_level(clause.span)?;
            let Some(items) = clause.proper_list().filter(|items| items.len() >= 2) else {
                return Err(SyntaxError::in_form(clause, "no clause").expected(CASE));
            };
            let body = self.case_body(&key, clause, &items, home)?;
            if self.is_special(items[0], Special::Else, home) {
                check_else(clause, &items, index + 2 == operands.len())?;
                otherwise = body;
                break;
            }
            expanded.push((self.case_test(&key, items[0])?, body));
        }
        self.depth = depth;
        let body = expanded.into_iter().rev().fold(otherwise, |rest, (test, body)| match test {
            Some(test) => build::branch(self.world, test, body, rest),
            None => rest,
        });
        Ok(Core::Let(vec![(key, value)], Box::new(body)))
    }

    fn case_body(
        &mut self,
        key: &Rc<Variable>,
        clause: &Datum,
        items: &[&Datum],
        home: Home,
    ) -> Result {
        if !self.is_special(items[1], Special::Arrow, home) {
            return self.sequence_of(&items[1..], home);
        }
        if items.len() != 3 {
            return Err(SyntaxError::in_form(clause, "a malformed => clause")
                .expected("((datum ...) => procedure)"));
        }
        let receiver = self.expression(items[2], home)?;
        let key = build::local(key, clause.span);
        Ok(Core::Call(Box::new(receiver), vec![key], clause.span))
    }

    /// Whether the key is one of `data`; `None` if `data` is empty.
    fn case_test(&mut self, key: &Rc<Variable>, data: &Datum) -> Result<Option<Core>> {
        let span = data.span;
        let Some(items) = data.proper_list() else {
            return Err(SyntaxError::in_form(data, "no list of data").expected(CASE));
        };
        if items.len() > INLINE_DATA_MAX {
            let arguments = vec![build::local(key, span), Core::Constant(self.strip(data)?)];
            return Ok(Some(build::runtime_call(self.world, "%case-memv", arguments, span)));
        }
        let mut test: Option<Core> = None;
        for item in items.into_iter().rev() {
            let compare = if is_immediate(item) { "eq?" } else { "eqv?" };
            let arguments = vec![build::local(key, span), Core::Constant(self.strip(item)?)];
            let found = build::runtime_call(self.world, compare, arguments, item.span);
            test = Some(match test {
                Some(rest) => {
                    let truth = Core::Constant(Datum::boolean(true, span));
                    build::branch(self.world, found, truth, rest)
                }
                None => found,
            });
        }
        Ok(test)
    }

    /// `(and-let* (clause ...) body ...)`, SRFI 2. A clause is `(variable expression)`,
    /// `(expression)` or a variable. Evaluation ends at the first false clause.
    #[inline(never)]
    pub(super) fn and_let_star(&mut self, form: &Datum, home: Home) -> Result {
        let shape = "(and-let* (clause ...) body ...)";
        let operands = parts(form, 1, None, shape)?;
        let Some(clauses) = operands[0].proper_list() else { return Err(malformed(form, shape)) };
        let depth = self.depth;
        let mut home = home;
        let mut stages: Vec<(Rc<Variable>, Core)> = Vec::new();
        for clause in clauses {
            self.enter_level(clause.span)?;
            let (name, expression) = match clause.proper_list().as_deref() {
                Some([name, expression]) if name.is_identifier() => (Some(*name), *expression),
                Some([expression]) => (None, *expression),
                None if clause.is_identifier() => (None, clause),
                _ => return Err(SyntaxError::in_form(clause, "no clause").expected(shape)),
            };
            let value = self.expression(expression, home)?;
            let variable = match name {
                Some(name) => {
                    let scope = self.scopes.push(home);
                    home = Home::Scope(scope);
                    self.bind_variable(name, scope, None)?
                }
                None => build::temporary("t"),
            };
            stages.push((variable, value));
        }
        let span = form.span;
        let mut core = match form.as_pair().and_then(|(_, rest)| rest.as_pair()) {
            Some((_, body)) if !body.is_nil() => self.body(body, form, home)?,
            _ => match stages.last() {
                Some((variable, _)) => build::local(variable, span),
                None => Core::Constant(Datum::boolean(true, span)),
            },
        };
        self.depth = depth;
        for (variable, value) in stages.into_iter().rev() {
            let failed = Core::Constant(Datum::boolean(false, span));
            let body = build::branch(self.world, build::local(&variable, span), core, failed);
            core = Core::Let(vec![(variable, value)], Box::new(body));
        }
        Ok(core)
    }
}

fn check_else(clause: &Datum, items: &[&Datum], is_last: bool) -> Result<()> {
    if is_last && items.len() >= 2 {
        return Ok(());
    }
    Err(SyntaxError::in_form(clause, "a misplaced or empty else clause")
        .expected("else in the last clause, with an expression"))
}

/// Whether `eq?` compares this datum as `eqv?` does.
fn is_immediate(datum: &Datum) -> bool {
    match &*datum.kind {
        DatumKind::Number(NumberLiteral::Integer(n)) => is_fixnum(*n),
        DatumKind::Boolean(_)
        | DatumKind::Character(_)
        | DatumKind::Symbol(_)
        | DatumKind::Alias(_)
        | DatumKind::Nil => true,
        _ => false,
    }
}
