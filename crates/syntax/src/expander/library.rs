//! `define-library`, and loading libraries.
//!
//! A library is expanded at its first import, in an environment of its own. Its body runs once,
//! before the importer. If the body fails, the library counts as not loaded.

use super::{Expander, TopLevel};
use crate::datum::{Datum, Span};
use crate::environment::{Environment, nearest};
use crate::error::SyntaxError;
use crate::library::{Exports, Library, LibraryName, library_name_of};
use crate::reader::read_all;
use crate::source;
use crate::symbol::Symbol;
use std::path::PathBuf;
use std::sync::Arc;

/// Longest chain of libraries that import one another.
const CHAIN_MAX: usize = 100;

type Result<T> = core::result::Result<T, SyntaxError>;

/// The collected declarations of a library.
#[derive(Default)]
struct Declarations {
    imports: Vec<Datum>,
    /// Internal name, external name.
    exports: Vec<(Datum, Symbol)>,
    body: Vec<Datum>,
}

impl Expander<'_> {
    /// `(define-library ...)`: declares the library.
    pub(super) fn declare_library(&mut self, form: &Datum) -> Result<()> {
        let name = library_name_of(form)?;
        if matches!(
            self.world().libraries.get(&name.written),
            Some(Library::BuiltIn(_) | Library::Text(..))
        ) {
            let message = format!("library {} is built in", name.written);
            return Err(SyntaxError::new(form.span, message).expected("another name"));
        }
        let library = Library::Declared(form.clone());
        self.world().libraries.insert(name.written, library);
        Ok(())
    }

    /// The exports of the library called `name`. Loads the library if it is not loaded yet.
    pub(super) fn exports_of(&mut self, name: &Datum, out: &mut Vec<TopLevel>) -> Result<Exports> {
        let library = LibraryName::parse(name)?;
        let world = self.world();
        let definition = match world.libraries.get(&library.written) {
            Some(Library::BuiltIn(names)) => return Ok(built_in_exports(world.system(), names)),
            Some(Library::Loaded { exports, ready, .. })
                if *ready || world.queued.contains(&library.written) =>
            {
                return Ok(exports.clone());
            }
            Some(Library::Loaded { definition, .. } | Library::Declared(definition)) => {
                definition.clone()
            }
            Some(Library::Loading) => {
                let message = format!("library {} imports itself", library.written);
                return Err(SyntaxError::new(name.span, message)
                    .expected("libraries that do not import one another in a circle"));
            }
            Some(Library::Text(source, text)) => {
                let (source, text) = (*source, *text);
                self.library_in(text, source, &library, name.span)?
            }
            None => self.library_from_file(&library, name.span)?,
        };
        self.load(library.written, definition, name.span, out)
    }

    fn library_from_file(&mut self, library: &LibraryName, span: Span) -> Result<Datum> {
        let Some(path) = self.world().library_file(library) else {
            return Err(self.no_such_library(library, span));
        };
        let text = source::read_plain_file(&path, span)?;
        self.library_in(&text, &path.to_string_lossy(), library, span)
    }

    /// The definition of a library in a text.
    fn library_in(
        &mut self,
        text: &str,
        source: &str,
        library: &LibraryName,
        span: Span,
    ) -> Result<Datum> {
        for datum in read_all(text, source)? {
            if library_name_of(&datum).is_ok_and(|name| name.written == library.written) {
                return Ok(datum);
            }
        }
        let message = format!("{source} does not define library {}", library.written);
        Err(SyntaxError::new(span, message)
            .expected(format!("(define-library {} ...) in it", library.written)))
    }

    fn no_such_library(&mut self, library: &LibraryName, span: Span) -> SyntaxError {
        let message = format!("there is no library {}", library.written);
        let error = SyntaxError::new(span, message);
        let known = self.world().libraries.keys();
        if let Some(near) = nearest(&library.written, known.map(|name| &**name)) {
            return error.expected(near);
        }
        let shown = |folder: &PathBuf| match folder.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => folder.display().to_string(),
        };
        let folders: Vec<String> = self.world().library_path().iter().map(shown).collect();
        match (&library.file, folders.is_empty()) {
            (Some(file), false) => {
                error.expected(format!("{} in one of: {}", file.display(), folders.join(", ")))
            }
            _ => error.expected("a built-in library, or a define-library before"),
        }
    }

    fn load(
        &mut self,
        written: Arc<str>,
        definition: Datum,
        span: Span,
        out: &mut Vec<TopLevel>,
    ) -> Result<Exports> {
        let world = self.world();
        let loading = world.libraries.values().filter(|l| matches!(l, Library::Loading)).count();
        if loading >= CHAIN_MAX {
            let message = format!("more than {CHAIN_MAX} libraries import one another in a chain");
            return Err(SyntaxError::new(span, message));
        }
        world.libraries.insert(Arc::clone(&written), Library::Loading);
        let environment = world.empty_environment();
        let mut items = Vec::new();
        let result = self
            .inside(Arc::clone(&environment), |inner| inner.library_body(&definition, &mut items));
        let world = self.world();
        match result {
            Ok(exports) => {
                let library = Library::Loaded {
                    exports: exports.clone(),
                    definition,
                    ready: false,
                    environment,
                };
                world.libraries.insert(Arc::clone(&written), library);
                world.queued.insert(Arc::clone(&written));
                out.append(&mut items);
                out.push(TopLevel::Ready(written));
                Ok(exports)
            }
            Err(error) => {
                // If the library is in a file, the file is read again. If a program declared it, it
                // remains declared.
                world.libraries.insert(Arc::clone(&written), Library::Declared(definition));
                if !error_is_in(&error, span) {
                    return Err(error.note(span, format!("library {written} is imported here")));
                }
                Err(error)
            }
        }
    }

    fn library_body(&mut self, form: &Datum, out: &mut Vec<TopLevel>) -> Result<Exports> {
        let mut declarations = Declarations::default();
        let mut work: Vec<Datum> = form.elements().skip(2).cloned().collect();
        work.reverse();
        while let Some(declaration) = work.pop() {
            let more = self.declaration(&declaration, &mut declarations)?;
            work.extend(more.into_iter().rev());
        }
        self.import_sets(&declarations.imports, out)?;
        for form in &declarations.body {
            self.fresh_budget();
            self.top_level(form, out)?;
        }
        let mut exports = Exports::new();
        for (internal, external) in declarations.exports {
            let Some(identifier) = internal.as_identifier() else { continue };
            let environment = self.environment();
            let Some(binding) = environment.defined(&identifier) else {
                let message = format!("`{internal}` is exported but not defined");
                let error = SyntaxError::new(internal.span, message);
                return Err(match environment.nearest(identifier.symbol().name()) {
                    Some(near) => error.expected(format!("a definition, or perhaps `{near}`")),
                    None => error.expected("a definition of it in the library"),
                });
            };
            exports.push((external, binding));
        }
        Ok(exports)
    }

    /// Processes one declaration. Returns the declarations that replace it.
    fn declaration(&mut self, form: &Datum, into: &mut Declarations) -> Result<Vec<Datum>> {
        self.charge(1, form.span)?;
        let wrong = || {
            SyntaxError::in_form(form, "no library declaration").expected(
                "export, import, begin, include, include-ci, include-library-declarations or \
                 cond-expand",
            )
        };
        let items = form.proper_list().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
        let operands = || items[1..].iter().map(|&item| item.clone());
        match items[0].as_symbol().map(Symbol::name) {
            Some("export") => {
                for spec in &items[1..] {
                    into.exports.push(export_spec(spec)?);
                }
            }
            Some("import") => into.imports.extend(operands()),
            Some("begin") => into.body.extend(operands()),
            Some("include") => into.body.extend(self.include(form, false)?),
            Some("include-ci") => into.body.extend(self.include(form, true)?),
            Some("include-library-declarations") => return self.include(form, false),
            Some("cond-expand") => return self.cond_expand(form, self.home()),
            _ => return Err(wrong()),
        }
        Ok(Vec::new())
    }
}

fn error_is_in(error: &SyntaxError, span: Span) -> bool {
    error.span().source == span.source
}

fn built_in_exports(system: &Environment, names: &[&str]) -> Exports {
    if names.is_empty() {
        return system.public_bindings();
    }
    let words = names.iter().flat_map(|group| group.split_ascii_whitespace());
    words
        .map(|name| {
            let symbol = Symbol::intern(name);
            (symbol, system.binding_or_reference(symbol))
        })
        .collect()
}

/// `name` or `(rename internal external)`.
fn export_spec(spec: &Datum) -> Result<(Datum, Symbol)> {
    if let Some(symbol) = spec.as_symbol() {
        return Ok((spec.clone(), symbol));
    }
    if let Some([word, internal, external]) = spec.proper_list().as_deref()
        && word.as_symbol().is_some_and(|word| word.name() == "rename")
        && internal.is_identifier()
        && let Some(external) = external.as_symbol()
    {
        return Ok(((*internal).clone(), external));
    }
    Err(SyntaxError::new(spec.span, format!("{spec} is no export"))
        .expected("name or (rename internal external)"))
}

#[cfg(test)]
mod tests;
