//! Expansion in a world: how callers of this crate use the expander.

use crate::datum::{Datum, Home};
use crate::environment::Environment;
use crate::error::SyntaxError;
use crate::expander::{Expander, TopLevel, syntax_rules};
use crate::reader::read_all;
use crate::rules::Macro;
use crate::symbol::Symbol;
use crate::world::{DERIVED_FORMS, TextLibrary, World};
use std::sync::Arc;

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A world whose system environment contains the special forms and nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::with_libraries(&[])
    }

    /// As [`World::new`], with these libraries, which count as built in.
    #[must_use]
    pub fn with_libraries(texts: &'static [TextLibrary]) -> Self {
        Self::with_special_forms(texts).load_derived_forms()
    }

    /// Expands the derived forms. They are part of this program, so they contain no errors.
    fn load_derived_forms(mut self) -> Self {
        let system = Arc::clone(self.system());
        let forms =
            read_all(DERIVED_FORMS, "derived.scm").expect("derived.scm is read by every test");
        for form in forms {
            self.expand(&system, &form).expect("derived.scm is expanded by every test");
        }
        self
    }

    /// The environment that `(environment import-set ...)` requests, and the forms that must run
    /// before it is used.
    ///
    /// # Errors
    /// An import set that is malformed, or names something that does not exist.
    pub fn environment_of(
        &mut self,
        import_sets: &[Datum],
    ) -> Result<(Arc<Environment>, Vec<TopLevel>), SyntaxError> {
        self.queued.clear();
        let environment = self.empty_environment();
        let mut out = Vec::new();
        Expander::new(self, Arc::clone(&environment)).import_sets(import_sets, &mut out)?;
        Ok((environment, out))
    }

    /// Expands one form at the top level of `environment`. The results must be compiled and run in
    /// order, before the next form is expanded.
    ///
    /// # Errors
    /// The first error in the form. In this case the form has defined nothing.
    pub fn expand(
        &mut self,
        environment: &Arc<Environment>,
        form: &Datum,
    ) -> Result<Vec<TopLevel>, SyntaxError> {
        self.queued.clear();
        let mut out = Vec::new();
        Expander::new(self, Arc::clone(environment)).top_level(form, &mut out)?;
        Ok(out)
    }

    /// Compiles a macro from the result of [`Macro::source`]. Images restore macros this way.
    ///
    /// # Errors
    /// The rules are malformed.
    pub fn restore_macro(
        &mut self,
        environment: Arc<Environment>,
        (written, home, name): (&Datum, Home, Option<Symbol>),
    ) -> Result<Macro, SyntaxError> {
        syntax_rules::compile(written, home, name, &mut Expander::new(self, environment))
    }
}
