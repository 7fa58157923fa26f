//! Forms at the top level of a program, a prompt or a library.

use super::definition::{Init, Keyword};
use super::multiple::parse_define_values;
use super::{Core, Expander, Meaning, Result, build, parts};
use crate::datum::{Datum, Home, Identifier};
use crate::environment::{Binding, Origin};
use crate::error::SyntaxError;
use crate::location::Location;
use crate::special::Special;
use std::sync::Arc;

/// An action that a top-level form requires; actions run in order.
#[derive(Debug)]
pub enum TopLevel {
    /// Compile and run this.
    Form(Core),
    /// The body of this library has run: call
    /// [`World::library_ready`](crate::world::World::library_ready).
    Ready(Arc<str>),
}

/// A part of a top-level form that is not expanded yet.
enum Part {
    /// A definition of variables, by this form.
    Definition(Special, Datum),
    Expression(Datum),
}

impl Expander<'_> {
    /// Expands `form` at the top level of the environment.
    ///
    /// First finds the definitions in it, as in a body, so that forms may use what a macro defines
    /// after them. Then expands the sources of the values, in order.
    ///
    /// # Errors
    /// The first error in the form. In this case the form has defined nothing.
    pub(crate) fn top_level(&mut self, form: &Datum, out: &mut Vec<TopLevel>) -> Result<()> {
        let result = self.top_forms(form, out);
        let redefined = self.redefined.drain(..).rev();
        if result.is_err() {
            redefined.for_each(|(name, before)| self.top.restore(&name, before));
        }
        result
    }

    fn top_forms(&mut self, form: &Datum, out: &mut Vec<TopLevel>) -> Result<()> {
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
                    self.expand_parts(&mut found, home, out)?;
                    self.import(&form, out)?;
                }
                Some(Meaning::Special(Special::DefineLibrary)) => self.declare_library(&form)?,
                Some(Meaning::Special(Special::DefineSyntax)) => {
                    self.define_syntax(&form, &mut found, out)?;
                }
                Some(Meaning::Special(
                    special @ (Special::Define | Special::DefineValues | Special::DefineRecordType),
                )) => {
                    self.announce(special, &form, &mut found, out)?;
                    found.push(Part::Definition(special, form));
                }
                _ => found.push(Part::Expression(form)),
            }
        }
        self.expand_parts(&mut found, home, out)
    }

    /// Expands the parts found so far, because the parts that follow may change the meaning of
    /// their names.
    fn expand_parts(
        &mut self,
        found: &mut Vec<Part>,
        home: Home,
        out: &mut Vec<TopLevel>,
    ) -> Result<()> {
        for part in found.drain(..) {
            match part {
                Part::Definition(special, form) => self.definition(special, &form, home, out)?,
                Part::Expression(form) => {
                    out.push(TopLevel::Form(self.expression(&form, home)?));
                }
            }
        }
        Ok(())
    }

    /// Makes the locations of the names that `form` defines, so that all parts of the form can
    /// refer to them. An imported variable keeps its meaning until its definition is expanded. A
    /// keyword keeps its meaning for the parts before its definition.
    fn announce(
        &mut self,
        special: Special,
        form: &Datum,
        found: &mut Vec<Part>,
        out: &mut Vec<TopLevel>,
    ) -> Result<()> {
        for name in self.names_defined(special, form)?.iter().filter_map(Datum::as_identifier) {
            match self.top.lookup(&name) {
                Some(Binding::Macro(_) | Binding::Special(_)) => {
                    self.expand_parts(found, self.home(), out)?;
                }
                Some(Binding::Variable { origin: Origin::Own | Origin::Imported, .. }) => continue,
                Some(Binding::Variable { origin: Origin::Undefined, .. }) | None => {}
            }
            self.define(&name);
        }
        Ok(())
    }

    fn names_defined(&self, special: Special, form: &Datum) -> Result<Vec<Datum>> {
        Ok(match special {
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
        })
    }

    /// Defines a keyword. Earlier parts use the former meaning of the name.
    fn define_syntax(
        &mut self,
        form: &Datum,
        found: &mut Vec<Part>,
        out: &mut Vec<TopLevel>,
    ) -> Result<()> {
        let (name, spec) = super::define::parse_define_syntax(form)?;
        if self.top.defined(&identifier(name)?).is_some() {
            self.expand_parts(found, self.home(), out)?;
        }
        let binding = match self.transformer(spec, self.home(), name)? {
            Keyword::Macro(rules) => Binding::Macro(rules),
            Keyword::Special(special) => Binding::Special(special),
        };
        self.bind(identifier(name)?, binding);
        Ok(())
    }

    /// Binds `name`. The binding is undone if the form has an error.
    pub(crate) fn bind(&mut self, name: Identifier, binding: Binding) {
        self.note_redefined(&name);
        self.top.bind(name, binding);
    }

    /// The location that a definition of `name` writes.
    fn define(&mut self, name: &Identifier) -> Location {
        self.note_redefined(name);
        self.top.define(name)
    }

    fn note_redefined(&mut self, name: &Identifier) {
        self.redefined.push((name.clone(), self.top.lookup(name)));
    }

    /// The meaning of the head of a top-level form. `import` and `define-library` are known without
    /// an import.
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

    fn definition(
        &mut self,
        special: Special,
        form: &Datum,
        home: Home,
        out: &mut Vec<TopLevel>,
    ) -> Result<()> {
        match special {
            Special::DefineValues => {
                out.push(TopLevel::Form(self.define_values_top(form, home)?));
            }
            Special::DefineRecordType => self.define_record_type_top(form, out)?,
            _ => {
                let (name, init) = self.parse_define(form)?;
                out.push(TopLevel::Form(self.define_top(&name, init, form, home)?));
            }
        }
        Ok(())
    }

    fn define_top(&mut self, name: &Datum, init: Init, form: &Datum, home: Home) -> Result {
        let identifier = identifier(name)?;
        let global = self.define(&identifier);
        let value = match &init {
            Init::Expression(value) => {
                self.named_expression(value, home, Some(identifier.symbol()))?
            }
            Init::Procedure(formals, body, whole) => {
                self.lambda_of(formals, body, whole, home, Some(identifier.symbol()))?
            }
            Init::Effect(_) | Init::Values(..) | Init::Core(_) => Core::Unspecified,
        };
        Ok(Core::DefineGlobal(global, Box::new(value), form.span))
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
    pub(super) fn define_global(&mut self, name: &Datum) -> Result<Location> {
        Ok(self.define(&identifier(name)?))
    }
}

fn identifier(name: &Datum) -> Result<Identifier> {
    name.as_identifier().ok_or_else(|| {
        SyntaxError::new(name.span, format!("{name} cannot be defined")).expected("an identifier")
    })
}
