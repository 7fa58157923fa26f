//! The libraries that a world knows.

use crate::datum::Datum;
use crate::error::SyntaxError;
use crate::library::{BUILT_IN, Library, LibraryName, library_name_of};
use crate::world::{TextLibrary, World};
use std::path::PathBuf;
use std::sync::Arc;

/// Makes the built-in libraries known.
pub(super) fn declare_built_in(world: &mut World, texts: &'static [TextLibrary]) {
    for (name, exports) in BUILT_IN {
        world.libraries.insert((*name).into(), Library::BuiltIn(exports));
    }
    for (name, source, text) in texts {
        world.libraries.insert((*name).into(), Library::Text(source, text));
    }
}

impl World {
    /// Records that a library's body has run to its end, as
    /// [`TopLevel::Ready`](crate::expander::TopLevel::Ready) requires.
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
        BUILT_IN.iter().find(|(_, groups)| exports(groups)).map(|(library, _)| *library)
    }

    /// Whether a library of this name is known or exists as a file.
    pub(crate) fn has_library(&self, name: &Datum) -> bool {
        let Ok(name) = LibraryName::parse(name) else { return false };
        self.libraries.contains_key(&name.written) || self.library_file(&name).is_some()
    }

    /// Declares the libraries of these definitions and returns their names. Declares none if one of
    /// them is not allowed.
    pub(crate) fn declare_all(&mut self, definitions: &[Datum]) -> Result<Vec<Datum>, SyntaxError> {
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

    pub(crate) fn library_file(&self, name: &LibraryName) -> Option<PathBuf> {
        let file = name.file.as_ref()?;
        self.library_path().iter().map(|folder| folder.join(file)).find(|path| path.is_file())
    }
}
