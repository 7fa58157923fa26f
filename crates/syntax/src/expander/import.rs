//! `import`: import sets, and the names that they bind.

use super::{Expander, TopLevel};
use crate::datum::{Datum, Identifier};
use crate::environment::{Binding, nearest};
use crate::error::SyntaxError;
use crate::library::Exports;
use crate::symbol::Symbol;
use std::collections::HashMap;

const IMPORT: &str = "(library name), (only set name ...), (except set name ...), \
                      (prefix set word) or (rename set (old new) ...)";

type Result<T> = core::result::Result<T, SyntaxError>;

impl Expander<'_> {
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
    pub(crate) fn import_sets(&mut self, sets: &[Datum], out: &mut Vec<TopLevel>) -> Result<()> {
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
        self.enter_level(set.span)?;
        let mut exports = self.import_set(items[1], out)?;
        self.leave_level();
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
