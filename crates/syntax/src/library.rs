//! A library as data: its name, its state, its exports. The built-in libraries.

mod built_in;

pub use built_in::LIBRARIES as BUILT_IN;

use crate::datum::{Datum, DatumKind, NumberLiteral};
use crate::environment::{Binding, Environment};
use crate::error::SyntaxError;
use crate::symbol::Symbol;
use std::path::PathBuf;
use std::sync::Arc;

const SHAPE: &str = "(define-library (name ...) declaration ...)";

type Result<T> = core::result::Result<T, SyntaxError>;
/// The exports of a library: each external name and its meaning, in any order.
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

/// A library's name as written, and its file.
pub(crate) struct LibraryName {
    pub(crate) written: Arc<str>,
    /// `None` if a part of the name could lead out of the library folders.
    pub(crate) file: Option<PathBuf>,
}

impl LibraryName {
    pub(crate) fn parse(name: &Datum) -> Result<Self> {
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

/// The name of the library that `form` defines.
pub(crate) fn library_name_of(form: &Datum) -> Result<LibraryName> {
    let items = form.proper_list().filter(|items| {
        items.len() >= 2 && items[0].as_symbol().is_some_and(|s| s.name() == "define-library")
    });
    match items {
        Some(items) => LibraryName::parse(items[1]),
        None => Err(SyntaxError::in_form(form, "malformed define-library").expected(SHAPE)),
    }
}
