//! The state that outlives one expansion: environments, libraries, and the folders where libraries
//! are found.
//!
//! The crate's module `expand` has the methods of a world that expand forms.
//!
//! A session has one `World`, behind a lock that an expansion holds until it is done. So threads of
//! one session expand one after the other.
//!
//! ```text
//! system environment: every primitive, the prelude, special forms, %helpers
//!    |  exported by name
//!    v
//! built-in libraries --> programs, prompts, libraries in files
//! ```

mod libraries;

use crate::datum::{Datum, Identifier};
use crate::environment::{Binding, Environment, SYSTEM};
use crate::error::SyntaxError;
use crate::library::Library;
use crate::location::{Globals, Location};
use crate::package::Package;
use crate::special::SPECIALS;
use crate::symbol::Symbol;
use core::fmt;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The features that `cond-expand` and `features` report.
pub const FEATURES: &[&str] = &[
    "r7rs",
    "exact-closed",
    "exact-complex",
    "ratios",
    "ieee-float",
    "full-unicode",
    "threads",
    "kyocho",
    "unix",
    "linux",
    #[cfg(target_arch = "x86_64")]
    "x86-64",
    #[cfg(target_arch = "aarch64")]
    "aarch64",
    #[cfg(target_endian = "little")]
    "little-endian",
];

/// The derived forms, which are macros.
pub const DERIVED_FORMS: &str = include_str!("derived.scm");

/// Native stack that an expansion may use by default: fits the usual 2 MiB of a thread. One level
/// of nesting takes 1 to 4 KiB, depending on the form and on the optimisation.
const STACK_BYTES_MAX: usize = 3 << 19;

/// The user that owns a world.
pub trait User: fmt::Debug + Send + Sync {
    /// Whether the user's programs may read any file. Called for each file, because the answer may
    /// change.
    fn may_read_files(&self) -> bool;
}

/// A library as text: its name, the name of its source in messages, its definition.
pub type TextLibrary = (&'static str, &'static str, &'static str);

/// The environments and libraries of one system or session.
#[derive(Debug)]
pub struct World {
    globals: Arc<Globals>,
    system: Arc<Environment>,
    /// Environments by number. The aliases of macros refer to them by number.
    environments: HashMap<u64, Weak<Environment>>,
    next_environment: u64,
    pub(crate) libraries: HashMap<Arc<str>, Library>,
    /// Libraries whose bodies the expansion in progress has placed before its own form.
    pub(crate) queued: HashSet<Arc<str>>,
    library_path: Vec<PathBuf>,
    packages: Vec<Arc<Package>>,
    stack_bytes_max: usize,
    /// The user whose rights apply to reading files. `None`: the user that runs the process.
    user: Option<Arc<dyn User>>,
    /// Libraries that are read at their first import.
    texts: &'static [TextLibrary],
}

impl World {
    /// A world whose system environment contains the special forms and nothing else.
    pub(crate) fn with_special_forms(texts: &'static [TextLibrary]) -> Self {
        let globals = Arc::new(Globals::default());
        let system = Arc::new(Environment::new(SYSTEM, Arc::clone(&globals)));
        for &(name, special) in SPECIALS {
            let name = Identifier::Symbol(Symbol::intern(name));
            system.bind(name, Binding::Special(special));
        }
        Self::over(globals, system, texts)
    }

    fn over(
        globals: Arc<Globals>,
        system: Arc<Environment>,
        texts: &'static [TextLibrary],
    ) -> Self {
        let environments = HashMap::from([(SYSTEM, Arc::downgrade(&system))]);
        let mut world = Self {
            globals,
            system,
            environments,
            next_environment: SYSTEM + 1,
            libraries: HashMap::new(),
            queued: HashSet::new(),
            library_path: Vec::new(),
            packages: Vec::new(),
            stack_bytes_max: STACK_BYTES_MAX,
            user: None,
            texts,
        };
        libraries::declare_built_in(&mut world, texts);
        world
    }

    /// A world that shares only the system environment with this one. No world can change the
    /// system environment; definitions and loaded libraries get locations of their own. `include`
    /// may read files outside the library folders as long as `user` may use files.
    #[must_use]
    pub fn for_user(&self, user: Arc<dyn User>) -> Self {
        let other = Self::over(
            Arc::new(self.globals.of_same_system()),
            Arc::clone(&self.system),
            self.texts,
        );
        let library_path = self.library_path.clone();
        let user = Some(user);
        let mut other = Self { library_path, stack_bytes_max: self.stack_bytes_max, user, ..other };
        for package in &self.packages {
            // Every world can add a package that the system's world has added: none of its
            // libraries is loaded here yet.
            let _ = other.add_package(Arc::clone(package));
        }
        other
    }

    /// The locations made here; roots of the collector.
    #[must_use]
    pub fn globals(&self) -> &Arc<Globals> {
        &self.globals
    }

    /// The environment where primitives are defined and the prelude is expanded. No other
    /// environment can assign or redefine its names.
    #[must_use]
    pub fn system(&self) -> &Arc<Environment> {
        &self.system
    }

    /// The system's location called `name`, made if it does not exist. The expander's calls of
    /// helpers refer to it, and the compiler recognises primitives by it.
    #[must_use]
    pub fn runtime(&self, name: &str) -> Location {
        self.system.reference(Symbol::intern(name))
    }

    fn number_environment(&mut self, make: impl FnOnce(u64) -> Environment) -> Arc<Environment> {
        let number = self.next_environment;
        self.next_environment += 1;
        if self.environments.len().is_power_of_two() {
            self.environments.retain(|_, environment| environment.strong_count() > 0);
        }
        let environment = Arc::new(make(number));
        self.environments.insert(number, Arc::downgrade(&environment));
        environment
    }

    /// An empty environment, for a program that begins with `import`.
    pub fn empty_environment(&mut self) -> Arc<Environment> {
        let globals = Arc::clone(&self.globals);
        self.number_environment(|number| Environment::new(number, globals))
    }

    /// An environment with all public names of the system, for a prompt or a program without
    /// `import`.
    pub fn interaction_environment(&mut self) -> Arc<Environment> {
        let (globals, system) = (Arc::clone(&self.globals), Arc::clone(&self.system));
        self.number_environment(|number| Environment::over(number, globals, system))
    }

    /// The environment for a program: empty if it begins with `import`.
    pub fn program_environment(&mut self, first_form: Option<&Datum>) -> Arc<Environment> {
        let imports = first_form
            .and_then(Datum::as_pair)
            .and_then(|(head, _)| head.as_symbol())
            .is_some_and(|word| matches!(word.name(), "import" | "define-library"));
        if imports { self.empty_environment() } else { self.interaction_environment() }
    }

    /// Adds a folder where library `(a b)` is found as `a/b.sld`. It is searched after those added
    /// before.
    pub fn add_library_folder(&mut self, folder: &Path) {
        if !self.library_path.iter().any(|known| known == folder) {
            self.library_path.push(folder.to_path_buf());
        }
    }

    pub(crate) fn library_path(&self) -> &[PathBuf] {
        &self.library_path
    }

    /// Adds the libraries of a package and returns their names. They replace libraries of the same
    /// names from packages added before.
    ///
    /// # Errors
    /// One of them is built in, or loaded already.
    pub fn add_package(&mut self, package: Arc<Package>) -> Result<Vec<Datum>, SyntaxError> {
        let names = self.declare_all(&package.definitions)?;
        self.packages.push(package);
        Ok(names)
    }

    /// The content of the file at `path` in a package.
    pub(crate) fn packed_file(&self, path: &Path) -> Option<&[u8]> {
        let found = self.packages.iter().rev().find_map(|package| package.files.get(path));
        found.map(Vec::as_slice)
    }

    /// Sets how much native stack an expansion may use: at most what its caller has left.
    pub fn set_stack_bytes_max(&mut self, bytes: usize) {
        self.stack_bytes_max = bytes;
    }

    pub(crate) fn stack_bytes_max(&self) -> usize {
        self.stack_bytes_max
    }

    /// Whether a program may read the file at `path`. Files in library folders are always allowed.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        let lies_in = |folder: &PathBuf| match (folder.canonicalize(), path.canonicalize()) {
            (Ok(folder), Ok(path)) => path.starts_with(folder),
            _ => false,
        };
        self.user.as_ref().is_none_or(|user| user.may_read_files())
            || self.library_path.iter().any(lies_in)
    }

    /// The environment with this number, if it still exists.
    #[must_use]
    pub fn environment(&self, number: u64) -> Option<Arc<Environment>> {
        if number == SYSTEM {
            return Some(Arc::clone(&self.system));
        }
        self.environments.get(&number)?.upgrade()
    }

    pub(crate) fn has_feature(&self, name: &str) -> bool {
        FEATURES.contains(&name)
    }
}
