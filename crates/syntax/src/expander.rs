//! The expander: turns data into core forms, resolves every name and expands every macro.
//!
//! Hygiene is by renaming. A macro inserts an identifier as a fresh *alias*. The alias remembers
//! the identifier and the scope of the macro's definition. A binding form binds the alias itself,
//! so nothing that the user wrote can refer to it. An alias that nothing binds means what its
//! original means at the macro's definition. Names are compared by their meanings, never by
//! spelling. (Clinger and Rees, *Macros That Work*, 1991, with renaming on insertion made lazy.)
//!
//! Recursive functions are not inlined (`#[inline(never)]`). If they were inlined into one another,
//! every level of nesting would take the stack of the largest frame.
//!
//! **Invariant:** `depth` is the number of nested forms being expanded, at most [`DEPTH_MAX`]. Core
//! forms nest at most four times as deep. So the compiler and the destructor, which recurse over
//! core forms, are bounded too.

mod binding;
mod body;
mod build;
mod conditional;
mod define;
mod definition;
mod dynamic;
mod import;
mod inclusion;
mod library;
mod meaning;
mod multiple;
mod quasiquote;
mod quote;
mod record;
mod scope;
pub(crate) mod syntax_rules;
mod top_level;

use crate::core_form::{Core, Lambda};
use crate::datum::{Datum, DatumKind, Home, Identifier, Span};
use crate::environment::{Binding, Environment, Origin};
use crate::error::SyntaxError;
use crate::location::Location;
use crate::rules::Macro;
use crate::special::Special;
use crate::symbol::Symbol;
use crate::world::World;
use body::Pending;
use scope::{Local, Scopes};
use std::rc::Rc;
use std::sync::Arc;

use meaning::Meaning;
pub use top_level::TopLevel;

/// Maximum number of levels of nested forms, including those that macros and sequences such as
/// `cond` produce. The core forms made of them nest at most four times as deep.
pub const DEPTH_MAX: u32 = 2000;
/// Maximum number of steps that one top-level form may take: forms visited and data that macros
/// make.
pub const STEPS_MAX: u64 = 8_000_000;
type Result<T = Core> = core::result::Result<T, SyntaxError>;

/// Expands one top-level form.
#[derive(Debug)]
pub(crate) struct Expander<'w> {
    world: &'w mut World,
    top: Arc<Environment>,
    scopes: Scopes,
    bodies: Vec<Pending>,
    lambda: u32,
    lambdas: u32,
    depth: u32,
    steps: u64,
    inclusions: u32,
    stack_top: usize,
    /// The former meanings of the names that the form has defined so far.
    redefined: Vec<(Identifier, Option<Binding>)>,
}

impl<'w> Expander<'w> {
    pub(crate) fn new(world: &'w mut World, top: Arc<Environment>) -> Self {
        Self {
            world,
            top,
            scopes: Scopes::default(),
            bodies: Vec::new(),
            lambda: 0,
            lambdas: 0,
            depth: 0,
            steps: 0,
            inclusions: 0,
            stack_top: stack_address(),
            redefined: Vec::new(),
        }
    }

    pub(super) fn world(&mut self) -> &mut World {
        self.world
    }

    pub(super) fn environment(&self) -> &Arc<Environment> {
        &self.top
    }

    pub(super) fn home(&self) -> Home {
        Home::Top(self.top.number())
    }

    /// Runs `work` in another environment, on the same native stack.
    pub(super) fn inside<T>(
        &mut self,
        environment: Arc<Environment>,
        work: impl FnOnce(&mut Expander<'_>) -> T,
    ) -> T {
        let mut inner = Expander::new(self.world, environment);
        inner.stack_top = self.stack_top;
        work(&mut inner)
    }

    /// Resets the budget for another top-level form.
    pub(super) fn fresh_budget(&mut self) {
        (self.steps, self.inclusions) = (0, 0);
        self.scopes = Scopes::default();
        self.bodies.clear();
    }

    /// Charges steps to the form being expanded.
    pub(crate) fn charge(&mut self, steps: u64, span: Span) -> Result<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps <= STEPS_MAX {
            return Ok(());
        }
        let message = format!("expanding this takes more than {STEPS_MAX} steps");
        Err(SyntaxError::new(span, message).expected("macros whose expansion ends"))
    }

    /// Enters one more level of nested forms. The caller calls [`leave_level`](Self::leave_level)
    /// afterwards, except after an error, which ends the expansion.
    pub(super) fn enter_level(&mut self, span: Span) -> Result<()> {
        self.depth += 1;
        self.charge(1, span)?;
        let used = self.stack_top.abs_diff(stack_address());
        if self.depth <= DEPTH_MAX && used <= self.world.stack_bytes_max() {
            return Ok(());
        }
        Err(SyntaxError::new(span, "this is nested too deep to expand")
            .expected(format!("at most {DEPTH_MAX} forms inside one another")))
    }

    /// Leaves a level.
    pub(super) fn leave_level(&mut self) {
        self.depth -= 1;
    }

    /// Expands an expression.
    fn expression(&mut self, form: &Datum, home: Home) -> Result {
        self.named_expression(form, home, None)
    }

    /// Expands an expression. A lambda gets `name`, which its backtraces show.
    fn named_expression(&mut self, form: &Datum, home: Home, name: Option<Symbol>) -> Result {
        self.enter_level(form.span)?;
        let core = match self.head(form, home) {
            Some(Meaning::Special(special)) => self.special(special, form, home, name)?,
            Some(Meaning::Macro(rules)) => self.macro_use(&rules, form, home, name)?,
            Some(_) => self.call(form, home)?,
            None => self.headless(form, home)?,
        };
        self.leave_level();
        Ok(core)
    }

    #[inline(never)]
    fn macro_use(
        &mut self,
        rules: &Arc<Macro>,
        form: &Datum,
        home: Home,
        name: Option<Symbol>,
    ) -> Result {
        let mut expanded = self.apply_macro(rules, form, home)?;
        // A macro that expands to another macro use costs steps but no stack.
        while let Some(Meaning::Macro(rules)) = self.head(&expanded, home) {
            expanded = self.apply_macro(&rules, &expanded, home)?;
        }
        self.named_expression(&expanded, home, name).map_err(|error| expansion_note(error, form))
    }

    #[inline(never)]
    fn apply_macro(&mut self, rules: &Arc<Macro>, form: &Datum, home: Home) -> Result<Datum> {
        self.charge(1, form.span)?;
        syntax_rules::apply(rules, form, home, self)
    }

    #[inline(never)]
    fn headless(&mut self, form: &Datum, home: Home) -> Result {
        match &*form.kind {
            DatumKind::Symbol(_) | DatumKind::Alias(_) => self.reference(form, home),
            DatumKind::Pair(..) => self.call(form, home),
            DatumKind::Nil => Err(SyntaxError::new(form.span, "() is no expression")
                .expected("(procedure argument ...), or '() for the empty list")),
            DatumKind::Label(..) | DatumKind::Reference(_) => {
                Err(SyntaxError::new(form.span, "a label stands outside quoted data")
                    .expected("labels inside (quote ...) only"))
            }
            _ => self.constant(form),
        }
    }

    #[inline(never)]
    fn call(&mut self, form: &Datum, home: Home) -> Result {
        let Some(items) = form.proper_list() else {
            return Err(SyntaxError::in_form(form, "a dot").expected("(procedure argument ...)"));
        };
        let (head, arguments) = (items[0], &items[1..]);
        if self
            .head(head, home)
            .is_some_and(|meaning| matches!(meaning, Meaning::Special(Special::Lambda)))
            && let Some(core) = self.direct_call(head, arguments, home)?
        {
            return Ok(core);
        }
        let procedure = self.expression(head, home)?;
        let arguments = self.expressions(arguments, home)?;
        Ok(Core::Call(Box::new(procedure), arguments, form.span))
    }

    fn expressions(&mut self, forms: &[&Datum], home: Home) -> Result<Vec<Core>> {
        forms.iter().map(|form| self.expression(form, home)).collect()
    }

    #[inline(never)]
    fn reference(&mut self, form: &Datum, home: Home) -> Result {
        let Some(identifier) = form.as_identifier() else { return self.constant(form) };
        match self.resolve(&identifier, home) {
            Meaning::Local(local) => {
                self.touch(&local);
                Ok(Core::Local(local.variable, form.span))
            }
            Meaning::Global(global, _) => Ok(Core::Global(global, form.span)),
            Meaning::Free(symbol, number) => {
                Ok(Core::Global(self.free_global(symbol, number), form.span))
            }
            Meaning::Special(_) | Meaning::Macro(_) => {
                let message = format!("`{form}` is a keyword, not a value");
                Err(SyntaxError::new(form.span, message).expected(format!("({form} ...)")))
            }
        }
    }

    /// Records a use of a variable: whether a lambda captures it, and whether it precedes its
    /// definition.
    fn touch(&mut self, local: &Local) {
        if local.lambda != self.lambda {
            local.variable.captured.set(true);
        }
        if let Some((body, place)) = local.pending {
            self.bodies[body as usize].touch(place);
        }
    }

    fn free_global(&self, symbol: Symbol, number: u64) -> Location {
        match self.world.environment(number) {
            Some(environment) => environment.reference(symbol),
            // The environment in which the macro was defined no longer exists, so the name is
            // unbound there.
            None => self.top.reference(symbol),
        }
    }

    #[inline(never)]
    fn assignment(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 2, Some(2), "(set! variable value)")?;
        let Some(identifier) = parts[0].as_identifier() else {
            return Err(SyntaxError::in_form(form, format!("{} is no variable", parts[0]))
                .expected("(set! variable value)"));
        };
        let meaning = self.resolve(&identifier, home);
        let value = Box::new(self.named_expression(parts[1], home, Some(identifier.symbol()))?);
        match meaning {
            Meaning::Local(local) => {
                self.touch(&local);
                local.variable.mutated.set(true);
                Ok(Core::SetLocal(local.variable, value, form.span))
            }
            Meaning::Global(_, Origin::Imported) => {
                let message = format!("`{identifier}` is imported and cannot be assigned");
                Err(SyntaxError::new(parts[0].span, message)
                    .expected(format!("(define {identifier} ...) to have one of your own")))
            }
            Meaning::Global(global, _) => Ok(Core::SetGlobal(global, value, form.span)),
            Meaning::Free(symbol, number) => {
                Ok(Core::SetGlobal(self.free_global(symbol, number), value, form.span))
            }
            Meaning::Special(_) | Meaning::Macro(_) => {
                let message = format!("`{identifier}` is a keyword and cannot be assigned");
                Err(SyntaxError::new(parts[0].span, message).expected("a variable"))
            }
        }
    }

    #[inline(never)]
    fn special(
        &mut self,
        special: Special,
        form: &Datum,
        home: Home,
        name: Option<Symbol>,
    ) -> Result {
        match special {
            Special::Quote => self.quote(form),
            Special::Quasiquote => self.quasiquote(form, home),
            Special::Lambda => self.lambda(form, home, name),
            Special::CaseLambda => self.case_lambda(form, home, name),
            Special::If => self.conditional(form, home),
            Special::Set => self.assignment(form, home),
            Special::Begin => self.begin(form, home),
            Special::Let => self.let_form(form, home),
            Special::LetStar => self.let_star(form, home),
            Special::Letrec | Special::LetrecStar => self.letrec(form, home),
            Special::LetValues => self.let_values(form, home),
            Special::LetStarValues => self.let_star_values(form, home),
            Special::Receive => self.receive(form, home),
            Special::LetSyntax => self.let_syntax(form, home, Special::LetSyntax),
            Special::LetrecSyntax => self.let_syntax(form, home, Special::LetrecSyntax),
            Special::Do => self.do_loop(form, home),
            Special::Cond => self.cond(form, home),
            Special::Case => self.case(form, home),
            Special::And => self.and(form, home),
            Special::Or => self.or(form, home),
            Special::When => self.when(form, home),
            Special::Unless => self.unless(form, home),
            Special::AndLetStar => self.and_let_star(form, home),
            Special::Assert => self.assert(form, home),
            Special::Delay => self.delay(form, home),
            Special::DelayForce => self.delay_force(form, home),
            Special::Parameterize => self.parameterize(form, home),
            Special::Guard => self.guard(form, home),
            Special::Include | Special::IncludeCi | Special::CondExpand => {
                self.spliced(special, form, home)
            }
            Special::SyntaxError => Err(syntax_error(form)),
            Special::SyntaxRules => {
                Err(SyntaxError::in_form(form, "syntax-rules is no expression")
                    .expected("(define-syntax name (syntax-rules ...))"))
            }
            Special::Define
            | Special::DefineValues
            | Special::DefineRecordType
            | Special::DefineSyntax
            | Special::DefineLibrary
            | Special::Import => Err(misplaced(form)),
            Special::Arrow
            | Special::Ellipsis
            | Special::Else
            | Special::Underscore
            | Special::Unquote
            | Special::UnquoteSplicing => Err(auxiliary(form, special)),
        }
    }

    #[inline(never)]
    fn lambda(&mut self, form: &Datum, home: Home, name: Option<Symbol>) -> Result {
        let rest = rest(form, 2, "(lambda (parameter ...) body ...)")?;
        let (formals, body) = rest.as_pair().unwrap_or((rest, rest));
        self.lambda_of(formals, body, form, home, name)
    }

    #[inline(never)]
    fn lambda_of(
        &mut self,
        formals: &Datum,
        body: &Datum,
        form: &Datum,
        home: Home,
        name: Option<Symbol>,
    ) -> Result {
        let clause = self.clause(formals, body, form, home)?;
        Ok(Core::Lambda(Rc::new(Lambda { name, clauses: vec![clause], span: form.span })))
    }

    #[inline(never)]
    fn case_lambda(&mut self, form: &Datum, home: Home, name: Option<Symbol>) -> Result {
        let shape = "(case-lambda ((parameter ...) body ...) ...)";
        let mut clauses = Vec::new();
        for clause in parts(form, 0, None, shape)? {
            let Some((formals, body)) = clause.as_pair() else {
                return Err(SyntaxError::in_form(clause, "no clause").expected(shape));
            };
            clauses.push(self.clause(formals, body, clause, home)?);
        }
        Ok(Core::Lambda(Rc::new(Lambda { name, clauses, span: form.span })))
    }

    #[inline(never)]
    fn begin(&mut self, form: &Datum, home: Home) -> Result {
        let forms = parts(form, 1, None, "(begin expression ...)")?;
        Ok(build::sequence(self.expressions(&forms, home)?))
    }
}

/// The approximate position of the native stack pointer: accurate enough to bound the stack that
/// the expander uses.
fn stack_address() -> usize {
    let here = 0u8;
    core::hint::black_box(&raw const here).addr()
}

/// The operands of a form: at least `min`, at most `max`. `shape` is the correct form that the
/// error shows.
fn parts<'a>(
    form: &'a Datum,
    min: usize,
    max: Option<usize>,
    shape: &str,
) -> Result<Vec<&'a Datum>> {
    let Some(mut parts) = form.proper_list() else { return Err(malformed(form, shape)) };
    parts.remove(0);
    if parts.len() < min || max.is_some_and(|max| parts.len() > max) {
        return Err(malformed(form, shape));
    }
    Ok(parts)
}

/// The operands of a form as a list, checked to be proper and to have at least `min` elements.
fn rest<'a>(form: &'a Datum, min: usize, shape: &str) -> Result<&'a Datum> {
    parts(form, min, None, shape)?;
    let (_, rest) = form.as_pair().ok_or_else(|| malformed(form, shape))?;
    Ok(rest)
}

fn malformed(form: &Datum, shape: &str) -> SyntaxError {
    let head = form.as_pair().map_or(form, |(head, _)| head);
    SyntaxError::new(form.span, format!("malformed `{head}`: {form}")).expected(shape)
}

fn misplaced(form: &Datum) -> SyntaxError {
    SyntaxError::in_form(form, "a definition where an expression must stand")
        .expected("definitions at top level or at the beginning of a body")
}

fn auxiliary(form: &Datum, special: Special) -> SyntaxError {
    let place = match special {
        Special::Else => "the last clause of cond, case or guard",
        Special::Arrow => "a clause of cond, case or guard",
        Special::Unquote | Special::UnquoteSplicing => "a quasiquoted template",
        _ => "syntax-rules",
    };
    SyntaxError::in_form(form, "misplaced keyword").expected(format!("it in {place}"))
}

/// `(syntax-error "message" form ...)`: an error with the macro writer's own message.
fn syntax_error(form: &Datum) -> SyntaxError {
    let items: Vec<_> = form.elements().skip(1).collect();
    let Some((message, irritants)) = items.split_first() else {
        return malformed(form, "(syntax-error \"message\" form ...)");
    };
    let mut text = message.as_string().map_or_else(|| message.to_string(), str::to_owned);
    for irritant in irritants {
        text.push_str(&format!(" {irritant}"));
    }
    SyntaxError::new(form.span, text)
}

fn expansion_note(error: SyntaxError, form: &Datum) -> SyntaxError {
    match form.as_pair() {
        Some((head, _)) => error.note(form.span, format!("in the expansion of `{head}`")),
        None => error,
    }
}

#[cfg(test)]
mod tests;
