//! Local scopes. Aliases and macros refer to scopes by number, so each scope is kept until its
//! top-level form is expanded.

use crate::core_form::Variable;
use crate::datum::{Home, Identifier};
use crate::rules::Macro;
use crate::special::Special;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A local variable, with what the expander needs to set its marks.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(super) variable: Rc<Variable>,
    /// The number of the lambda that binds it.
    pub(super) lambda: u32,
    /// The body and the index of its definition, if that body is still being expanded.
    pub(super) pending: Option<(u32, u32)>,
}

/// The meaning of a name in a scope.
#[derive(Debug)]
pub(super) enum LocalBinding {
    Variable(Local),
    Macro(Arc<Macro>),
    Special(Special),
}

#[derive(Debug)]
struct Scope {
    parent: Home,
    names: Vec<(Identifier, LocalBinding)>,
    /// Positions in `names`; used if there are many names.
    index: HashMap<Identifier, usize>,
}

/// Maximum number of names of a scope that is searched without an index.
const UNINDEXED_MAX: usize = 12;

/// The scopes of one top-level form.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    all: Vec<Scope>,
}

impl Scopes {
    /// A new, empty scope inside `parent`.
    pub(super) fn push(&mut self, parent: Home) -> u32 {
        let number = self.all.len() as u32;
        self.all.push(Scope { parent, names: Vec::new(), index: HashMap::new() });
        number
    }

    /// Binds a name in a scope. Returns `false` if the scope binds it already.
    pub(super) fn bind(&mut self, scope: u32, name: Identifier, binding: LocalBinding) -> bool {
        let scope = &mut self.all[scope as usize];
        if scope.find(&name).is_some() {
            return false;
        }
        if scope.names.len() >= UNINDEXED_MAX {
            if scope.index.is_empty() {
                let positions = scope.names.iter().enumerate();
                scope.index = positions.map(|(at, (name, _))| (name.clone(), at)).collect();
            }
            scope.index.insert(name.clone(), scope.names.len());
        }
        scope.names.push((name, binding));
        true
    }

    /// The meaning of `name`, searched from `home` outwards. The error is the number of the
    /// top-level environment if no scope binds the name.
    pub(super) fn find(&self, name: &Identifier, home: Home) -> Result<&LocalBinding, u64> {
        let mut home = home;
        while let Home::Scope(number) = home {
            // A scope of a form that was expanded earlier no longer exists.
            let Some(scope) = self.all.get(number as usize) else { return Err(0) };
            if let Some(binding) = scope.find(name) {
                return Ok(binding);
            }
            home = scope.parent;
        }
        match home {
            Home::Top(number) => Err(number),
            Home::Scope(_) => Err(0),
        }
    }
}

impl Scope {
    fn find(&self, name: &Identifier) -> Option<&LocalBinding> {
        if self.index.is_empty() {
            return self.names.iter().find(|(bound, _)| bound == name).map(|(_, binding)| binding);
        }
        self.index.get(name).map(|&at| &self.names[at].1)
    }
}
