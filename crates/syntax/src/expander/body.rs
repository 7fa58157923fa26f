//! Bodies. The definitions are found first, and their values are expanded afterwards.
//!
//! A definition that nothing refers to before its value exists becomes a plain `let`. If something
//! does (recursion, or a procedure that uses a later definition), several definitions become one
//! `letrec*`. They are those from the first with such a use to the one that it uses:
//!
//! ```text
//! (define a 1) (define (even? n) ... (odd? ..)) (define (odd? n) ... (even? ..)) (define b a) body
//! (let ((a 1)) (letrec* ((even? ..) (odd? ..)) (let ((b a)) body)))
//! ```

use super::definition::{Definition, Init, Keyword};
use super::scope::LocalBinding;
use super::{Core, Expander, Meaning, Result, build, syntax_rules};
use crate::core_form::Variable;
use crate::datum::{Datum, Home};
use crate::error::SyntaxError;
use crate::special::Special;
use std::rc::Rc;
use std::sync::Arc;

/// The definitions of one body while they are being expanded.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// The index of the definition whose value is being expanded.
    current: u32,
    /// For each definition, the index of the first definition whose value refers to it too early.
    earliest: Vec<u32>,
}

impl Pending {
    pub(super) fn touch(&mut self, place: u32) {
        if place >= self.current {
            let places = place as usize + 1;
            if self.earliest.len() < places {
                self.earliest.resize(places, u32::MAX);
            }
            let earliest = &mut self.earliest[place as usize];
            *earliest = (*earliest).min(self.current);
        }
    }
}

/// The state of scanning a body.
struct Scan {
    scope: u32,
    frame: u32,
    work: Vec<Datum>,
    definitions: Vec<Definition>,
    expressions: Vec<Datum>,
}

impl Expander<'_> {
    /// Expands `forms`, the body of `form`, in a new scope inside `home`.
    #[inline(never)]
    pub(super) fn body(&mut self, forms: &Datum, form: &Datum, home: Home) -> Result {
        let Some(work) = forms.proper_list() else {
            return Err(SyntaxError::in_form(form, "a dot in the body")
                .expected("definitions, then expressions"));
        };
        let work = work.into_iter().rev().cloned().collect();
        let scope = self.scopes.push(home);
        let frame = self.begin_definitions();
        let mut scan =
            Scan { scope, frame, work, definitions: Vec::new(), expressions: Vec::new() };
        while let Some(next) = scan.work.pop() {
            self.scan(next, &mut scan)?;
        }
        let Scan { definitions, expressions, .. } = scan;
        if expressions.is_empty() {
            let what = if definitions.is_empty() { "an empty body" } else { "no expression" };
            return Err(SyntaxError::in_form(form, what)
                .expected("at least one expression at the end of the body"));
        }
        let home = Home::Scope(scope);
        let expressions: Vec<&Datum> = expressions.iter().collect();
        self.definitions(definitions, frame, home, |expander| {
            expander.sequence_of(&expressions, home)
        })
    }

    /// Scans one form of a body. Records a definition; keeps an expression for later.
    #[inline(never)]
    fn scan(&mut self, form: Datum, scan: &mut Scan) -> Result<()> {
        self.charge(1, form.span)?;
        let home = Home::Scope(scan.scope);
        let special = match self.head(&form, home) {
            Some(Meaning::Macro(rules)) => {
                let expanded = self.apply_macro(&rules, &form, home)?;
                scan.work.push(expanded);
                return Ok(());
            }
            Some(Meaning::Special(special)) => special,
            _ => {
                scan.expressions.push(form);
                return Ok(());
            }
        };
        match special {
            Special::Begin => {
                let forms = super::parts(&form, 0, None, "(begin form ...)")?;
                scan.work.extend(forms.into_iter().rev().cloned());
            }
            Special::Include | Special::IncludeCi | Special::CondExpand => {
                let forms = self.splice(special, &form, home)?;
                scan.work.extend(forms.into_iter().rev());
            }
            Special::Define => {
                let (name, init) = self.parse_define(&form)?;
                self.scan_definition(&name, init, scan)?;
            }
            Special::DefineSyntax => {
                let (name, spec) = super::define::parse_define_syntax(&form)?;
                let keyword = self.transformer(spec, home, name)?;
                self.bind_keyword(name, scan.scope, keyword)?;
            }
            Special::DefineValues => self.scan_define_values(&form, scan)?,
            Special::DefineRecordType => self.scan_define_record_type(&form, scan)?,
            _ => scan.expressions.push(form),
        }
        Ok(())
    }

    /// Expressions before a definition keep their position: they become definitions whose values
    /// are ignored.
    fn flush_expressions(&self, scan: &mut Scan) {
        for expression in scan.expressions.drain(..) {
            let variable = build::temporary("effect");
            scan.definitions.push(Definition { variable, init: Init::Effect(expression) });
        }
    }

    fn scan_definition(
        &mut self,
        name: &Datum,
        init: Init,
        scan: &mut Scan,
    ) -> Result<Rc<Variable>> {
        self.flush_expressions(scan);
        let place = scan.definitions.len() as u32;
        let variable = self.bind_variable(name, scan.scope, Some((scan.frame, place)))?;
        scan.definitions.push(Definition { variable: Rc::clone(&variable), init });
        Ok(variable)
    }

    /// The values arrive as a list, in a definition of their own. The names are then defined from
    /// the list.
    fn scan_define_values(&mut self, form: &Datum, scan: &mut Scan) -> Result<()> {
        let (formals, expression) = super::multiple::parse_define_values(form)?;
        let span = form.span;
        let values = build::temporary("values");
        let names: Vec<_> = formals.elements().collect();
        let tail = formals.elements_tail();
        let has_rest = !tail.is_nil();
        let init = Init::Values(names.len(), has_rest, expression.clone());
        self.flush_expressions(scan);
        scan.definitions.push(Definition { variable: Rc::clone(&values), init });
        let mut list = values;
        for name in names {
            let item =
                build::runtime_call(self.world, "car", vec![build::local(&list, span)], span);
            self.scan_definition(name, Init::Core(item), scan)?;
            let next = build::temporary("values");
            let rest =
                build::runtime_call(self.world, "cdr", vec![build::local(&list, span)], span);
            let init = Init::Core(rest);
            scan.definitions.push(Definition { variable: Rc::clone(&next), init });
            list = next;
        }
        if has_rest {
            self.scan_definition(tail, Init::Core(build::local(&list, span)), scan)?;
        }
        Ok(())
    }

    fn scan_define_record_type(&mut self, form: &Datum, scan: &mut Scan) -> Result<()> {
        let record = super::record::parse(form)?;
        let make = record.make_type(self.world);
        let variable = self.scan_definition(record.name, Init::Core(make), scan)?;
        for (name, part) in &record.parts {
            let record_type = build::local(&variable, form.span);
            let core = part.make(self.world, record_type, name.span);
            self.scan_definition(name, Init::Core(core), scan)?;
        }
        Ok(())
    }

    /// Begins recording which definitions are used too early.
    pub(super) fn begin_definitions(&mut self) -> u32 {
        self.bodies.push(Pending::default());
        self.bodies.len() as u32 - 1
    }

    /// Expands the values of `definitions` in `home`, and inside them the form that `body` makes.
    #[inline(never)]
    pub(super) fn definitions(
        &mut self,
        definitions: Vec<Definition>,
        frame: u32,
        home: Home,
        body: impl FnOnce(&mut Self) -> Result,
    ) -> Result {
        let depth = self.depth;
        let mut bindings = Vec::with_capacity(definitions.len());
        for (place, Definition { variable, init }) in definitions.into_iter().enumerate() {
            self.bodies[frame as usize].current = place as u32;
            let name = Some(variable.name);
            let value = match init {
                Init::Expression(value) => self.named_expression(&value, home, name)?,
                Init::Effect(expression) => self.expression(&expression, home)?,
                Init::Procedure(formals, body, form) => {
                    self.lambda_of(&formals, &body, &form, home, name)?
                }
                Init::Values(count, has_rest, expression) => {
                    self.values_as_list(count, has_rest, &expression, home)?
                }
                Init::Core(core) => core,
            };
            bindings.push((variable, value));
            self.depth += 1;
        }
        self.bodies[frame as usize].current = u32::MAX;
        let body = body(self)?;
        self.depth = depth;
        let earliest = core::mem::take(&mut self.bodies[frame as usize].earliest);
        Ok(nest(bindings, &earliest, body))
    }

    pub(super) fn bind_keyword(
        &mut self,
        name: &Datum,
        scope: u32,
        keyword: Keyword,
    ) -> Result<()> {
        let Some(identifier) = name.as_identifier() else {
            return Err(SyntaxError::new(name.span, format!("{name} cannot be bound"))
                .expected("an identifier"));
        };
        let binding = match keyword {
            Keyword::Macro(rules) => LocalBinding::Macro(rules),
            Keyword::Special(special) => LocalBinding::Special(special),
        };
        if self.scopes.bind(scope, identifier, binding) {
            return Ok(());
        }
        Err(SyntaxError::new(name.span, format!("`{name}` is bound twice"))
            .expected("distinct names in one body"))
    }

    /// The meaning of a transformer expression: `syntax-rules`, a macro use that expands to it, or
    /// the name of another keyword.
    pub(super) fn transformer(
        &mut self,
        spec: &Datum,
        home: Home,
        name: &Datum,
    ) -> Result<Keyword> {
        let mut spec = spec.clone();
        loop {
            let meaning = spec.as_identifier().map(|identifier| self.resolve(&identifier, home));
            match meaning {
                Some(Meaning::Macro(rules)) => return Ok(Keyword::Macro(rules)),
                Some(Meaning::Special(special)) => return Ok(Keyword::Special(special)),
                _ => {}
            }
            match self.head(&spec, home) {
                Some(Meaning::Special(Special::SyntaxRules)) => {
                    let rules = syntax_rules::compile(&spec, home, name.as_symbol(), self)?;
                    return Ok(Keyword::Macro(Arc::new(rules)));
                }
                Some(Meaning::Macro(rules)) => spec = self.apply_macro(&rules, &spec, home)?,
                _ => {
                    return Err(SyntaxError::new(spec.span, format!("{spec} is no transformer"))
                        .expected("(syntax-rules (literal ...) (pattern template) ...)"));
                }
            }
        }
    }
}

/// Nests `bindings` around `body` as the module documentation describes.
fn nest(bindings: Vec<(Rc<Variable>, Core)>, earliest: &[u32], body: Core) -> Core {
    let mut core = body;
    let mut group = Vec::new();
    let mut group_start = usize::MAX;
    for (place, binding) in bindings.into_iter().enumerate().rev() {
        if let Some(&first) = earliest.get(place)
            && first != u32::MAX
        {
            group_start = group_start.min(first as usize);
        }
        if group_start == usize::MAX {
            core = Core::Let(vec![binding], Box::new(core));
            continue;
        }
        group.push(binding);
        if group_start == place {
            group.reverse();
            core = Core::Letrec(core::mem::take(&mut group), Box::new(core));
            group_start = usize::MAX;
        }
    }
    core
}
