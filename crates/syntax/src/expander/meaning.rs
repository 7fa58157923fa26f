//! The meaning of an identifier in a scope, and the aliases that macros insert.

use super::scope::{Local, LocalBinding};
use super::{Expander, Result};
use crate::datum::{Alias, Datum, DatumKind, Home, Identifier, Span};
use crate::environment::{Binding, Origin};
use crate::error::SyntaxError;
use crate::location::Location;
use crate::rules::Macro;
use crate::special::Special;
use crate::symbol::Symbol;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of generations of macros that define one another.
const GENERATIONS_MAX: u32 = 1000;

/// The meaning of an identifier.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Special(Special),
    Macro(Arc<Macro>),
    Local(Local),
    Global(Location, Origin),
    /// Unbound: a name at the top level of the environment with this number.
    Free(Symbol, u64),
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
    /// The meaning of `identifier` in scope `home`.
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

    /// The meaning of the head of `form`, if the head is an identifier.
    pub(super) fn head(&self, form: &Datum, home: Home) -> Option<Meaning> {
        let (head, _) = form.as_pair()?;
        Some(self.resolve(&head.as_identifier()?, home))
    }

    /// Whether `datum` is an identifier that means `special` in scope `home`.
    pub(super) fn is_special(&self, datum: &Datum, special: Special, home: Home) -> bool {
        datum.as_identifier().is_some_and(|identifier| {
            matches!(self.resolve(&identifier, home), Meaning::Special(found) if found == special)
        })
    }

    /// An identifier with the meaning that `name` has in the system environment.
    pub(super) fn system_identifier(&self, name: &str, span: Span) -> Datum {
        let of = Identifier::Symbol(Symbol::intern(name));
        let home = Home::Top(self.world.system().number());
        Datum::new(DatumKind::Alias(Arc::new(Alias { of, home, generation: 0 })), span)
    }
}

/// For macro expansion: a new alias of `of`, to be looked up in scope `home`.
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
