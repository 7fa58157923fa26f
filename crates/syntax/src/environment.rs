//! Top-level environments: the meanings of names at a prompt, in a program, in a library.
//!
//! A name is *own*, *imported* or *undefined*. An own name is defined here. An imported name shares
//! the location of its library, so it cannot be assigned here. An undefined name was used before
//! any definition. It has a location already, so a later definition reaches the code that used it.
//!
//! An environment may extend a *base*. Names that it does not have itself mean what the base's
//! public names mean, as if imported. So a prompt costs memory for its own definitions only.
//!
//! **Invariant:** a [`Location`] is own in exactly one environment. So a name imported from a
//! built-in library is the primitive as long as it has the primitive's location. A program that
//! defines `car` gets another location.

use super::datum::Identifier;
use super::location::{Globals, Location};
use super::rules::Macro;
use super::special::Special;
use crate::symbol::Symbol;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a name means at top level.
#[derive(Clone, Debug)]
pub enum Binding {
    /// A special form.
    Special(Special),
    /// A macro.
    Macro(Arc<Macro>),
    /// A variable.
    Variable {
        /// Its location.
        global: Location,
        /// How the environment got it.
        origin: Origin,
    },
}

/// How an environment got a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Defined here.
    Own,
    /// From a library or from the base. Cannot be assigned here.
    Imported,
    /// Used but not defined yet.
    Undefined,
}

impl Binding {
    /// Whether both mean the same, so that importing a name twice does no harm.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Special(a), Self::Special(b)) => a == b,
            (Self::Macro(a), Self::Macro(b)) => Arc::ptr_eq(a, b),
            (Self::Variable { global: a, .. }, Self::Variable { global: b, .. }) => a == b,
            _ => false,
        }
    }

    /// The same binding, as an importing environment has it.
    pub(crate) fn imported(self) -> Self {
        match self {
            Self::Variable { global, .. } => Self::Variable { global, origin: Origin::Imported },
            keyword => keyword,
        }
    }
}

/// The number of the system's environment.
pub(crate) const SYSTEM: u64 = 0;

/// A top-level environment.
#[derive(Debug)]
pub struct Environment {
    number: u64,
    globals: Arc<Globals>,
    base: Option<Arc<Self>>,
    names: Mutex<HashMap<Identifier, Binding>>,
}

impl Environment {
    pub(crate) fn new(number: u64, globals: Arc<Globals>) -> Self {
        Self { number, globals, base: None, names: Mutex::new(HashMap::new()) }
    }

    /// An environment that extends `base`. Nothing may be defined in `base` afterwards.
    pub(crate) fn over(number: u64, globals: Arc<Globals>, base: Arc<Self>) -> Self {
        Self { base: Some(base), ..Self::new(number, globals) }
    }

    /// Its number in its world. Aliases refer to it by this number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A new location.
    fn make(&self, name: Symbol) -> Location {
        if self.number == SYSTEM {
            return self.globals.make_lasting(name);
        }
        self.globals.make(name)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Identifier, Binding>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The meaning of a name here.
    #[must_use]
    pub fn lookup(&self, identifier: &Identifier) -> Option<Binding> {
        let own = self.table().get(identifier).cloned();
        own.or_else(|| self.inherited(identifier))
    }

    /// The meaning of a name in the base.
    fn inherited(&self, identifier: &Identifier) -> Option<Binding> {
        let base = self.base.as_ref()?;
        match identifier {
            Identifier::Symbol(symbol) if is_public(*symbol) => {
                base.defined(identifier).map(Binding::imported)
            }
            _ => None,
        }
    }

    /// The location that `(define identifier ...)` writes: the own location of the name, or a new
    /// one.
    pub(crate) fn define(&self, identifier: &Identifier) -> Location {
        let before = self.lookup(identifier);
        let global = match before {
            Some(Binding::Variable { global, origin: Origin::Own | Origin::Undefined }) => global,
            Some(Binding::Variable { global: imported, origin: Origin::Imported }) => {
                // The name keeps its value until the definition is evaluated. If that fails,
                // nothing has changed for the user.
                let global = self.make(identifier.symbol());
                global.set_word(imported.word());
                global
            }
            _ => self.make(identifier.symbol()),
        };
        let binding = Binding::Variable { global: global.clone(), origin: Origin::Own };
        self.bind(identifier.clone(), binding);
        global
    }

    /// The location of a variable. A name without one gets a new location, and counts as undefined.
    pub(crate) fn reference(&self, symbol: Symbol) -> Location {
        let identifier = Identifier::Symbol(symbol);
        if let Some(Binding::Variable { global, .. }) = self.lookup(&identifier) {
            return global;
        }
        let global = self.make(symbol);
        let binding = Binding::Variable { global: global.clone(), origin: Origin::Undefined };
        self.bind(identifier, binding);
        global
    }

    /// Binds the name.
    pub fn bind(&self, identifier: Identifier, binding: Binding) {
        self.table().insert(identifier, binding);
    }

    /// The meaning of a name here. `None` if the name was only used and never defined.
    pub(crate) fn defined(&self, identifier: &Identifier) -> Option<Binding> {
        self.lookup(identifier).filter(|binding| {
            !matches!(binding, Binding::Variable { origin: Origin::Undefined, .. })
        })
    }

    /// The meaning of a name here. An unknown name gets a location without a value.
    pub(crate) fn binding_or_reference(&self, symbol: Symbol) -> Binding {
        self.lookup(&Identifier::Symbol(symbol)).unwrap_or_else(|| {
            let global = self.reference(symbol);
            Binding::Variable { global, origin: Origin::Undefined }
        })
    }

    /// The symbols that have an entry in this environment itself, not in its base, and that do not
    /// begin with `%`; each with its meaning. Aliases that macros have bound are left out.
    #[must_use]
    pub fn public_bindings(&self) -> Vec<(Symbol, Binding)> {
        let table = self.table();
        let public = table.iter().filter_map(|(identifier, binding)| match identifier {
            Identifier::Symbol(symbol) if is_public(*symbol) => Some((*symbol, binding.clone())),
            _ => None,
        });
        public.collect()
    }

    /// All names of this environment itself, with their meanings.
    #[must_use]
    pub fn bindings(&self) -> Vec<(Identifier, Binding)> {
        self.table().iter().map(|(name, binding)| (name.clone(), binding.clone())).collect()
    }

    /// Whether this environment extends the system environment.
    #[must_use]
    pub fn is_over_system(&self) -> bool {
        self.base.is_some()
    }

    /// Undoes a definition.
    pub(crate) fn restore(&self, identifier: &Identifier, before: Option<Binding>) {
        match before {
            Some(binding) => self.table().insert(identifier.clone(), binding),
            None => self.table().remove(identifier),
        };
    }

    /// Defines `name` from Rust: primitives get their locations this way.
    pub fn define_name(&self, name: &str) -> Location {
        self.define(&Identifier::Symbol(Symbol::intern(name)))
    }

    /// The location that `name` refers to here, if it is a variable, whether bound to a value or
    /// not.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<Location> {
        match self.lookup(&Identifier::Symbol(Symbol::intern(name)))? {
            Binding::Variable { global, .. } => Some(global),
            _ => None,
        }
    }

    /// All names that have a meaning here, sorted; for completion.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let inherited = self.base.as_ref().map_or_else(Vec::new, |base| base.names());
        let inherited = inherited.into_iter().filter(|name| is_public_name(name));
        let mut names: Vec<_> = self
            .table()
            .iter()
            .filter(|(_, binding)| {
                !matches!(binding, Binding::Variable { origin: Origin::Undefined, .. })
            })
            .filter_map(|(identifier, _)| match identifier {
                Identifier::Symbol(symbol) => Some(symbol.name()),
                Identifier::Alias(_) => None,
            })
            .chain(inherited)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The bound name that is closest in spelling to `name`.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        let others = self.names().into_iter().filter(|known| *known != name);
        nearest(name, others.filter(|known| is_public_name(known)))
    }
}

/// Whether a system name is visible outside the system environment.
fn is_public(symbol: Symbol) -> bool {
    is_public_name(symbol.name())
}

fn is_public_name(name: &str) -> bool {
    !name.starts_with('%')
}

/// The candidate with the fewest edits from `name`. `None` if every candidate needs too many: more
/// than one for each three characters of `name`, at least one allowed and at most three.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let name: Vec<char> = name.chars().collect();
    let edits_max = (name.len() / 3).clamp(1, 3);
    candidates
        .filter(|candidate| candidate.chars().count().abs_diff(name.len()) <= edits_max)
        .map(|candidate| (edits(&name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= edits_max && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Number of insertions, deletions, replacements and swaps of neighbours that turn one word into
/// the other.
fn edits(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests;
