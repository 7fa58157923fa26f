//! Forms at the top level of a program, a prompt or a library.

use super::body::{Init, Keyword};
use super::multiple::parse_define_values;
use super::{Core, Expander, Meaning, Result, build, parts};
use crate::syntax::datum::{Datum, Home, Identifier};
use crate::syntax::environment::Binding;
use crate::syntax::error::SyntaxError;
use crate::syntax::location::Location;
use crate::syntax::special::Special;
use std::sync::Arc;

/// What a top-level form leaves to do, in order.
#[derive(Debug)]
pub enum TopLevel {
    /// Compile and run this.
    Form(Core),
    /// The body of this library has run: tell [`World::library_ready`](crate::syntax::world::World::library_ready).
    Ready(Arc<str>),
}

/// A part of a top-level form whose names are known and whose expressions are yet to be expanded.
enum Found {
    /// What an import put before what follows it.
    Ready(Vec<TopLevel>),
    Special(Special, Datum),
    Expression(Datum),
}

impl Expander<'_> {
    /// Expands `form` at the top level of the environment.
    ///
    /// First finds the definitions in it, as a body does: what a macro defines may be used by the
    /// forms before its definition. Then expands what they are made from, in order.
    pub(crate) fn top_level(&mut self, form: &Datum, out: &mut Vec<TopLevel>) -> Result<()> {
        let home = Home::Top(self.top.number());
        let mut found = Vec::new();
        let mut work = vec![form.clone()];
        while let Some(form) = work.pop() {
            self.charge(1, form.span)?;
            match self.top_special(&form, home) {
                Some(Meaning::Macro(rules)) => {
                    let expanded = self.apply_macro(&rules, &form, home)?;
                    work.push(expanded);
                }
                Some(Meaning::Special(Special::Begin)) => {
                    let forms = parts(&form, 0, None, "(begin form ...)")?;
                    work.extend(forms.into_iter().rev().cloned());
                }
                Some(Meaning::Special(
                    special @ (Special::Include | Special::IncludeCi | Special::CondExpand),
                )) => work.extend(self.splice(special, &form, home)?.into_iter().rev()),
                Some(Meaning::Special(Special::Import)) => {
                    let mut ready = Vec::new();
                    self.import(&form, &mut ready)?;
                    found.push(Found::Ready(ready));
                }
                Some(Meaning::Special(Special::DefineLibrary)) => self.declare_library(&form)?,
                Some(Meaning::Special(Special::DefineSyntax)) => self.define_syntax(&form, home)?,
                Some(Meaning::Special(special)) => {
                    self.announce(special, &form)?;
                    found.push(Found::Special(special, form));
                }
                _ => found.push(Found::Expression(form)),
            }
        }
        for found in found {
            match found {
                Found::Ready(mut ready) => out.append(&mut ready),
                Found::Special(special, form) => self.top_form(special, &form, home, out)?,
                Found::Expression(form) => {
                    out.push(TopLevel::Form(self.expression(&form, home)?));
                }
            }
        }
        Ok(())
    }

    /// Gives the names that a macro made up and that `form` defines their locations. A name that
    /// a program wrote has one from its first use on.
    fn announce(&self, special: Special, form: &Datum) -> Result<()> {
        let names = match special {
            Special::Define => vec![self.parse_define(form)?.0],
            Special::DefineValues => {
                let (formals, _) = parse_define_values(form)?;
                formals.elements().chain([formals.elements_tail()]).cloned().collect()
            }
            Special::DefineRecordType => {
                let record = super::record::parse(form)?;
                let parts = record.parts.iter().map(|(name, _)| *name);
                parts.chain([record.name]).cloned().collect()
            }
            _ => Vec::new(),
        };
        for name in names.iter().filter_map(Datum::as_identifier) {
            if matches!(name, Identifier::Alias(_)) && self.top.lookup(&name).is_none() {
                self.top.define(&name);
            }
        }
        Ok(())
    }

    fn define_syntax(&mut self, form: &Datum, home: Home) -> Result<()> {
        let (name, spec) = super::define::parse_define_syntax(form)?;
        let binding = match self.transformer(spec, home, name)? {
            Keyword::Macro(rules) => Binding::Macro(rules),
            Keyword::Special(special) => Binding::Special(special),
        };
        self.top.bind(identifier(name)?, binding);
        Ok(())
    }

    /// What the head of a top-level form means. `import` and `define-library` need no import.
    fn top_special(&self, form: &Datum, home: Home) -> Option<Meaning> {
        match self.head(form, home)? {
            Meaning::Free(name, _) if name.name() == "import" => {
                Some(Meaning::Special(Special::Import))
            }
            Meaning::Free(name, _) if name.name() == "define-library" => {
                Some(Meaning::Special(Special::DefineLibrary))
            }
            meaning => Some(meaning),
        }
    }

    fn top_form(
        &mut self,
        special: Special,
        form: &Datum,
        home: Home,
        out: &mut Vec<TopLevel>,
    ) -> Result<()> {
        match special {
            Special::Define => {
                let (name, init) = self.parse_define(form)?;
                let core = self.define_top(&name, init, form, home)?;
                out.push(TopLevel::Form(core));
            }
            Special::DefineValues => {
                out.push(TopLevel::Form(self.define_values_top(form, home)?));
            }
            Special::DefineRecordType => self.define_record_type_top(form, out)?,
            _ => out.push(TopLevel::Form(self.expression(form, home)?)),
        }
        Ok(())
    }

    fn define_top(&mut self, name: &Datum, init: Init, form: &Datum, home: Home) -> Result {
        let identifier = identifier(name)?;
        let before = self.top.lookup(&identifier);
        let global = self.top.define(&identifier);
        let value = match &init {
            Init::Expression(value) => {
                self.named_expression(value, home, Some(identifier.symbol()))
            }
            Init::Procedure(formals, body, whole) => {
                self.lambda_of(formals, body, whole, home, Some(identifier.symbol()))
            }
            Init::Effect(_) | Init::Values(..) | Init::Core(_) => Ok(Core::Unspecified),
        };
        match value {
            Ok(value) => Ok(Core::DefineGlobal(global, Box::new(value), form.span)),
            Err(error) => {
                // A slip in a definition at the prompt must not take away what the name meant.
                self.top.restore(&identifier, before);
                Err(error)
            }
        }
    }

    fn define_record_type_top(&mut self, form: &Datum, out: &mut Vec<TopLevel>) -> Result<()> {
        let record = super::record::parse(form)?;
        let span = form.span;
        let make = Box::new(record.make_type(self.world));
        let record_type = self.define_global(record.name)?;
        let mut definitions = vec![Core::DefineGlobal(record_type.clone(), make, span)];
        for (name, part) in &record.parts {
            let global = self.define_global(name)?;
            let record_type = Core::Global(record_type.clone(), span);
            let value = Box::new(part.make(self.world, record_type, name.span));
            definitions.push(Core::DefineGlobal(global, value, name.span));
        }
        out.push(TopLevel::Form(build::sequence(definitions)));
        Ok(())
    }

    /// The location that a definition of `name` at top level writes.
    pub(super) fn define_global(&self, name: &Datum) -> Result<Location> {
        Ok(self.top.define(&identifier(name)?))
    }
}

fn identifier(name: &Datum) -> Result<Identifier> {
    name.as_identifier().ok_or_else(|| {
        SyntaxError::new(name.span, format!("{name} cannot be defined")).expected("an identifier")
    })
}
