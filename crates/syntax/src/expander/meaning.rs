//! Names: what an identifier means at a place, and the aliases that macros insert.

use super::scope::LocalBinding;
use super::{Expander, Result};
use crate::core_form::Variable;
use crate::datum::{Alias, Datum, DatumKind, Home, Identifier, Span};
use crate::environment::{Binding, Origin};
use crate::error::SyntaxError;
use crate::location::Location;
use crate::rules::Macro;
use crate::special::Special;
use crate::symbol::Symbol;
use std::rc::Rc;
use std::sync::Arc;

/// How many generations of macros may define one another.
const GENERATIONS_MAX: u32 = 1000;

/// What an identifier means.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Special(Special),
    Macro(Arc<Macro>),
    Local(Local),
    Global(Location, Origin),
    /// Nothing yet: a name at the top level of the environment with this number.
    Free(Symbol, u64),
}

/// A local variable and what the expander must know to mark it truthfully.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(super) variable: Rc<Variable>,
    /// The lambda that binds it.
    pub(super) lambda: u32,
    /// Its place among the definitions of a body still being expanded.
    pub(super) pending: Option<(u32, u32)>,
}

impl Meaning {
    /// Whether two identifiers with these meanings are the same (`free-identifier=?`).
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Special(a), Self::Special(b)) => a == b,
            (Self::Macro(a), Self::Macro(b)) => Arc::ptr_eq(a, b),
            (Self::Local(a), Self::Local(b)) => Rc::ptr_eq(&a.variable, &b.variable),
            (Self::Global(a, a_origin), Self::Global(b, b_origin)) => {
                a == b
                    || (*a_origin == Origin::Undefined
                        && *b_origin == Origin::Undefined
                        && a.name == b.name)
            }
            (Self::Free(a, _), Self::Free(b, _)) => a == b,
            (Self::Free(a, _), Self::Global(b, Origin::Undefined))
            | (Self::Global(b, Origin::Undefined), Self::Free(a, _)) => *a == b.name,
            _ => false,
        }
    }
}

impl Expander<'_> {
    /// What `identifier` means at `home`.
    pub(crate) fn resolve(&self, identifier: &Identifier, home: Home) -> Meaning {
        let (mut identifier, mut home) = (identifier, home);
        loop {
            let number = match self.scopes.find(identifier, home) {
                Ok(binding) => return local_meaning(binding),
                Err(number) => number,
            };
            match self.top_binding(identifier, number) {
                Some(Binding::Special(special)) => return Meaning::Special(special),
                Some(Binding::Macro(rules)) => return Meaning::Macro(rules),
                Some(Binding::Variable { global, origin }) => {
                    return Meaning::Global(global, origin);
                }
                None => {}
            }
            match identifier {
                Identifier::Symbol(symbol) => return Meaning::Free(*symbol, number),
                Identifier::Alias(alias) => (identifier, home) = (&alias.of, alias.home),
            }
        }
    }

    fn top_binding(&self, identifier: &Identifier, number: u64) -> Option<Binding> {
        if number == self.top.number() {
            return self.top.lookup(identifier);
        }
        self.world.environment(number)?.lookup(identifier)
    }

    /// What the head of `form` means, where it is an identifier.
    pub(super) fn head(&self, form: &Datum, home: Home) -> Option<Meaning> {
        let (head, _) = form.as_pair()?;
        Some(self.resolve(&head.as_identifier()?, home))
    }

    /// Whether `datum` is an identifier that means `special` at `home`.
    pub(super) fn is_special(&self, datum: &Datum, special: Special, home: Home) -> bool {
        datum.as_identifier().is_some_and(|identifier| {
            matches!(self.resolve(&identifier, home), Meaning::Special(found) if found == special)
        })
    }

    /// An identifier that means what `name` means in the system environment.
    pub(super) fn system_identifier(&self, name: &str, span: Span) -> Datum {
        let of = Identifier::Symbol(Symbol::intern(name));
        let home = Home::Top(self.world.system().number());
        Datum::new(DatumKind::Alias(Arc::new(Alias { of, home, generation: 0 })), span)
    }
}

/// For macro expansion: a fresh alias of `of`, to be looked up at `home`.
pub(crate) fn rename(of: &Identifier, home: Home, span: Span) -> Result<Datum> {
    let generation = match of {
        Identifier::Symbol(_) => 0,
        Identifier::Alias(alias) => alias.generation + 1,
    };
    if generation > GENERATIONS_MAX {
        let message = format!("more than {GENERATIONS_MAX} generations of macros define `{of}`");
        return Err(SyntaxError::new(span, message));
    }
    let alias = Alias { of: of.clone(), home, generation };
    Ok(Datum::new(DatumKind::Alias(Arc::new(alias)), span))
}

fn local_meaning(binding: &LocalBinding) -> Meaning {
    match binding {
        LocalBinding::Variable(local) => Meaning::Local(local.clone()),
        LocalBinding::Macro(rules) => Meaning::Macro(Arc::clone(rules)),
        LocalBinding::Special(special) => Meaning::Special(*special),
    }
}
