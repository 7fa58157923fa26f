//! Libraries: `define-library`, `import`, files, and the built-in libraries.
//!
//! A library is expanded at its first import, in an environment of its own. Its body runs once,
//! before the importer. If the body fails, the library counts as not loaded.

mod built_in;

pub use built_in::LIBRARIES as BUILT_IN;

use super::datum::{Datum, DatumKind, Identifier, NumberLiteral, Span};
use super::environment::{Binding, Environment, nearest};
use super::error::SyntaxError;
use super::expander::{Expander, TopLevel};
use super::reader::read_all;
use super::source;
use super::world::{TextLibrary, World};
use crate::symbol::Symbol;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

const SHAPE: &str = "(define-library (name ...) declaration ...)";
const IMPORT: &str = "(library name), (only set name ...), (except set name ...), \
                      (prefix set word) or (rename set (old new) ...)";
/// Longest chain of libraries that import one another.
const CHAIN_MAX: usize = 100;

type Result<T> = core::result::Result<T, SyntaxError>;
/// The exports of a library, sorted by name.
pub type Exports = Vec<(Symbol, Binding)>;

/// A library, identified by its written name.
#[derive(Debug)]
pub enum Library {
    /// Exports these names of the system environment; all of them if the list is empty.
    BuiltIn(&'static [&'static str]),
    /// A built-in library in Scheme that is not read yet: the name of its source and its text.
    Text(&'static str, &'static str),
    /// Its definition, not expanded yet.
    Declared(Datum),
    /// Being expanded. Importing it now would be circular.
    Loading,
    /// Expanded.
    Loaded {
        /// What it exports.
        exports: Exports,
        /// Its text as data.
        definition: Datum,
        /// Whether its body has run.
        ready: bool,
        /// Where its body was expanded.
        environment: Arc<Environment>,
    },
}

/// Makes the built-in libraries known.
pub(super) fn declare_built_in(world: &mut World, texts: &'static [TextLibrary]) {
    for (name, exports) in built_in::LIBRARIES {
        world.libraries.insert((*name).into(), Library::BuiltIn(exports));
    }
    for (name, source, text) in texts {
        world.libraries.insert((*name).into(), Library::Text(source, text));
    }
}

impl World {
    /// Records that a library's body has run to its end, as [`TopLevel::Ready`] requires.
    pub fn library_ready(&mut self, name: &str) {
        if let Some(Library::Loaded { ready, .. }) = self.libraries.get_mut(name) {
            *ready = true;
        }
    }

    /// The libraries that this world has declared or loaded.
    #[must_use]
    pub fn own_libraries(&self) -> Vec<(&str, &Library)> {
        let is_own =
            |library: &Library| !matches!(library, Library::BuiltIn(_) | Library::Text(..));
        let own = self.libraries.iter().filter(|(_, library)| is_own(library));
        own.map(|(name, library)| (&**name, library)).collect()
    }

    /// The names of all libraries known here, as written.
    #[must_use]
    pub fn library_names(&self) -> Vec<String> {
        self.libraries.keys().map(|name| name.to_string()).collect()
    }

    /// Adds a library in the state that it has in another world.
    pub fn adopt_library(&mut self, name: Arc<str>, library: Library) {
        self.libraries.insert(name, library);
    }

    /// The built-in library that exports `name`, the first in the table if several do. Messages
    /// suggest it if an import is missing.
    #[must_use]
    pub fn exported_by(&self, name: &str) -> Option<&'static str> {
        let exports = |groups: &[&str]| {
            groups.iter().any(|group| group.split_ascii_whitespace().any(|word| word == name))
        };
        built_in::LIBRARIES.iter().find(|(_, groups)| exports(groups)).map(|(library, _)| *library)
    }

    /// Whether a library of this name is known or exists as a file.
    pub(super) fn has_library(&self, name: &Datum) -> bool {
        let Ok(name) = LibraryName::parse(name) else { return false };
        self.libraries.contains_key(&name.written) || self.library_file(&name).is_some()
    }

    /// Declares the libraries of these definitions and returns their names. Declares none if one of
    /// them is not allowed.
    pub(super) fn declare_all(&mut self, definitions: &[Datum]) -> Result<Vec<Datum>> {
        let mut declared = Vec::new();
        for definition in definitions {
            let name = library_name_of(definition)?.written;
            let taken = match self.libraries.get(&name) {
                Some(Library::BuiltIn(_) | Library::Text(..)) => "is built in",
                Some(Library::Loading | Library::Loaded { .. }) => "is loaded already",
                Some(Library::Declared(_)) | None => "",
            };
            if !taken.is_empty() {
                let message = format!("library {name} {taken}");
                return Err(SyntaxError::new(definition.span, message).expected("another name"));
            }
            declared.push((name, definition.clone()));
        }
        let names = declared.iter().filter_map(|(_, form)| form.elements().nth(1).cloned());
        let names = names.collect();
        for (name, definition) in declared {
            self.libraries.insert(name, Library::Declared(definition));
        }
        Ok(names)
    }

    fn library_file(&self, name: &LibraryName) -> Option<PathBuf> {
        let file = name.file.as_ref()?;
        self.library_path().iter().map(|folder| folder.join(file)).find(|path| path.is_file())
    }
}

/// A library's name as written, and its file.
struct LibraryName {
    written: Arc<str>,
    /// `None` if a part of the name could lead out of the library folders.
    file: Option<PathBuf>,
}

impl LibraryName {
    fn parse(name: &Datum) -> Result<Self> {
        let wrong = || {
            SyntaxError::new(name.span, format!("{name} is no library name"))
                .expected("a list of identifiers and numbers, such as (scheme base)")
        };
        let parts = name.proper_list().filter(|parts| !parts.is_empty()).ok_or_else(wrong)?;
        let mut words = Vec::new();
        for part in parts {
            words.push(match (part.as_symbol(), &*part.kind) {
                (Some(symbol), _) => symbol.name().to_owned(),
                (None, DatumKind::Number(NumberLiteral::Integer(n))) if *n >= 0 => n.to_string(),
                _ => return Err(wrong()),
            });
        }
        let written = format!("({})", words.join(" ")).into();
        let is_plain = |word: &String| {
            !word.is_empty() && word != "." && word != ".." && !word.contains(['/', '\\', '\0'])
        };
        let file = words.iter().all(is_plain).then(|| {
            let mut file: PathBuf = words.iter().collect();
            file.as_mut_os_string().push(".sld");
            file
        });
        Ok(Self { written, file })
    }
}

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

    /// `(import set ...)` at top level.
    pub(super) fn import(&mut self, form: &Datum, out: &mut Vec<TopLevel>) -> Result<()> {
        let Some(sets) = form.proper_list() else {
            return Err(SyntaxError::in_form(form, "malformed import").expected(IMPORT));
        };
        let sets: Vec<Datum> = sets[1..].iter().map(|&set| set.clone()).collect();
        self.import_sets(&sets, out)
    }

    /// Imports into the environment, and loads libraries that are not loaded yet. Their bodies,
    /// which must run first, are added to `out`.
    pub(super) fn import_sets(&mut self, sets: &[Datum], out: &mut Vec<TopLevel>) -> Result<()> {
        let mut seen: HashMap<Symbol, Binding> = HashMap::new();
        for set in sets {
            let exports = self.import_set(set, out)?;
            add_imports(&mut seen, exports, set)?;
        }
        for (name, binding) in seen {
            let identifier = Identifier::Symbol(name);
            // A name defined here that is imported through a library remains assignable here.
            let before = self.environment().lookup(&identifier);
            if before.is_none_or(|before| !before.is_same(&binding)) {
                self.bind(identifier, binding);
            }
        }
        Ok(())
    }

    fn import_set(&mut self, set: &Datum, out: &mut Vec<TopLevel>) -> Result<Exports> {
        let wrong =
            || SyntaxError::new(set.span, format!("{set} is no import set")).expected(IMPORT);
        let items = set.proper_list().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
        let word = items[0].as_symbol().map(Symbol::name);
        let is_modifier = matches!(word, Some("only" | "except" | "prefix" | "rename"))
            && items.get(1).is_some_and(|inner| inner.as_pair().is_some());
        if !is_modifier {
            return self.exports_of(set, out);
        }
        self.deepen(set.span)?;
        let mut exports = self.import_set(items[1], out)?;
        self.come_back();
        let operands = &items[2..];
        match word {
            Some("only") => {
                let names = symbols(operands).ok_or_else(wrong)?;
                names.iter().map(|&name| find(&exports, name, set).cloned()).collect()
            }
            Some("except") => {
                for name in symbols(operands).ok_or_else(wrong)? {
                    find(&exports, name, set)?;
                    exports.retain(|(exported, _)| *exported != name);
                }
                Ok(exports)
            }
            Some("prefix") => {
                let [prefix] = operands else { return Err(wrong()) };
                let prefix = prefix.as_symbol().ok_or_else(wrong)?;
                for (name, _) in &mut exports {
                    *name = Symbol::intern(&format!("{prefix}{name}"));
                }
                Ok(exports)
            }
            _ => {
                let pairs: Option<Vec<_>> = operands.iter().map(|pair| two_symbols(pair)).collect();
                rename(exports, &pairs.ok_or_else(wrong)?, set)
            }
        }
    }

    /// The exports of the library called `name`. Loads the library if it is not loaded yet.
    fn exports_of(&mut self, name: &Datum, out: &mut Vec<TopLevel>) -> Result<Exports> {
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

fn add_imports(seen: &mut HashMap<Symbol, Binding>, exports: Exports, set: &Datum) -> Result<()> {
    for (name, binding) in exports {
        let binding = binding.imported();
        let other = seen.insert(name, binding.clone());
        if other.is_some_and(|other| !other.is_same(&binding)) {
            let message = format!("`{name}` is imported twice with different meanings");
            return Err(SyntaxError::new(set.span, message)
                .expected("one of them left out, with except, or renamed"));
        }
    }
    Ok(())
}

fn error_is_in(error: &SyntaxError, span: Span) -> bool {
    error.span().source == span.source
}

fn library_name_of(form: &Datum) -> Result<LibraryName> {
    let items = form.proper_list().filter(|items| {
        items.len() >= 2 && items[0].as_symbol().is_some_and(|s| s.name() == "define-library")
    });
    match items {
        Some(items) => LibraryName::parse(items[1]),
        None => Err(SyntaxError::in_form(form, "malformed define-library").expected(SHAPE)),
    }
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

fn symbols(data: &[&Datum]) -> Option<Vec<Symbol>> {
    data.iter().map(|datum| datum.as_symbol()).collect()
}

fn two_symbols(pair: &Datum) -> Option<(Symbol, Symbol)> {
    match pair.proper_list().as_deref() {
        Some([old, new]) => Some((old.as_symbol()?, new.as_symbol()?)),
        _ => None,
    }
}

fn find<'e>(exports: &'e Exports, name: Symbol, set: &Datum) -> Result<&'e (Symbol, Binding)> {
    exports.iter().find(|(exported, _)| *exported == name).ok_or_else(|| {
        let error = SyntaxError::in_form(set, format!("`{name}` is not exported"));
        match nearest(name.name(), exports.iter().map(|(exported, _)| exported.name())) {
            Some(near) => error.expected(format!("`{near}`, perhaps")),
            None => error.expected("a name that the library exports"),
        }
    })
}

fn rename(exports: Exports, pairs: &[(Symbol, Symbol)], set: &Datum) -> Result<Exports> {
    for (old, _) in pairs {
        find(&exports, *old, set)?;
    }
    let new_name =
        |name: Symbol| pairs.iter().find(|(old, _)| *old == name).map_or(name, |&(_, new)| new);
    Ok(exports.into_iter().map(|(name, binding)| (new_name(name), binding)).collect())
}

#[cfg(test)]
mod tests;
