//! `syntax-rules`. Rules are compiled when the macro is defined: errors in them are reported there,
//! and matching takes few steps.
//!
//! R7RS §4.3.2, with a common extension. A template variable may have more ellipses over it than in
//! its pattern. It then repeats in the innermost ones.

mod pattern;
mod template;

use super::{Expander, Meaning};
use crate::datum::{Datum, Home, Identifier};
use crate::error::SyntaxError;
use crate::rules::{Macro, Rule};
use crate::special::Special;
use crate::symbol::Symbol;

/// Maximum number of levels of nesting in patterns and templates.
const NESTING_MAX: u32 = 400;
const SHAPE: &str = "(syntax-rules (literal ...) (pattern template) ...)";

/// The datum or data that a pattern variable matched.
#[derive(Clone, Debug)]
enum Match {
    One(Datum),
    Many(Vec<Self>),
}

/// The ellipsis and the literals of the rules being compiled.
struct Words<'e, 'w> {
    expander: &'e Expander<'w>,
    home: Home,
    literals: Vec<Identifier>,
    /// The ellipsis identifier that `syntax-rules` itself declares, if any.
    ellipsis: Option<Identifier>,
}

impl Words<'_, '_> {
    fn is_literal(&self, identifier: &Identifier) -> bool {
        self.literals.contains(identifier)
    }

    fn is_ellipsis(&self, datum: &Datum) -> bool {
        let Some(identifier) = datum.as_identifier() else { return false };
        if self.is_literal(&identifier) {
            return false;
        }
        match &self.ellipsis {
            Some(ellipsis) => identifier == *ellipsis,
            None => self.means(&identifier, Special::Ellipsis, "..."),
        }
    }

    fn is_underscore(&self, identifier: &Identifier) -> bool {
        !self.is_literal(identifier) && self.means(identifier, Special::Underscore, "_")
    }

    /// Whether the identifier means `special`. Programs need not import `...` and `_`: unbound,
    /// they have their usual meaning.
    fn means(&self, identifier: &Identifier, special: Special, name: &str) -> bool {
        match self.expander.resolve(identifier, self.home) {
            Meaning::Special(found) => found == special,
            Meaning::Free(symbol, _) => symbol.name() == name,
            _ => false,
        }
    }
}

/// Compiles the `syntax-rules` form `spec`, found in scope `home`.
pub(crate) fn compile(
    spec: &Datum,
    home: Home,
    name: Option<Symbol>,
    expander: &mut Expander<'_>,
) -> Result<Macro, SyntaxError> {
    let malformed = || {
        let name = name.map_or("syntax-rules", Symbol::name);
        SyntaxError::in_form(spec, format!("malformed rules of `{name}`")).expected(SHAPE)
    };
    let items = spec.proper_list().filter(|items| items.len() >= 2).ok_or_else(malformed)?;
    let ellipsis = items[1].as_identifier();
    let rest = &items[if ellipsis.is_some() { 2 } else { 1 }..];
    let (literals, rules) = rest.split_first().ok_or_else(malformed)?;
    let literals = literals
        .proper_list()
        .and_then(|list| list.into_iter().map(Datum::as_identifier).collect::<Option<Vec<_>>>())
        .ok_or_else(malformed)?;
    expander.charge(rules.len() as u64, spec.span)?;
    let words = Words { expander, home, literals, ellipsis };
    let rules = rules.iter().map(|rule| compile_rule(rule, &words)).collect::<Result<_, _>>()?;
    Ok(Macro { home, rules, written: spec.clone(), name })
}

fn compile_rule(rule: &Datum, words: &Words<'_, '_>) -> Result<Rule, SyntaxError> {
    let (pattern, template) = match rule.proper_list().as_deref() {
        Some([pattern, template]) if pattern.as_pair().is_some() => (*pattern, *template),
        _ => {
            return Err(SyntaxError::in_form(rule, "no rule")
                .expected("((_ pattern ...) template), exactly one template a rule"));
        }
    };
    let written = pattern.clone();
    let Some((_, operands)) = pattern.as_pair() else {
        return Err(SyntaxError::in_form(rule, "no rule"));
    };
    let (pattern, variables) = pattern::compile(operands, words)?;
    let slots = variables.len();
    let (template, inserted) = template::compile(template, words, &variables)?;
    Ok(Rule { pattern, template, slots, inserted, written })
}

/// The expansion of `form`, a use of the macro in scope `home`.
pub(super) fn apply(
    rules: &Macro,
    form: &Datum,
    home: Home,
    expander: &mut Expander<'_>,
) -> Result<Datum, SyntaxError> {
    let Some((_, operands)) = form.as_pair() else { return Err(no_rule(rules, form)) };
    for rule in &rules.rules {
        let mut matcher = pattern::Matcher::new(expander, rules.home, home, rule.slots);
        let matched = matcher.matches(&rule.pattern, operands);
        let (matches, steps) = matcher.finish();
        expander.charge(steps, form.span)?;
        if matched {
            return template::instantiate(rule, &matches, rules.home, form, expander);
        }
    }
    Err(no_rule(rules, form))
}

fn no_rule(rules: &Macro, form: &Datum) -> SyntaxError {
    const SHOWN_MAX: usize = 6;
    let mut shapes: Vec<String> =
        rules.rules.iter().take(SHOWN_MAX).map(|rule| rule.written.to_string()).collect();
    if rules.rules.len() > SHOWN_MAX {
        shapes.push("...".to_owned());
    }
    SyntaxError::new(form.span, format!("no rule of this macro matches {form}")).expected(
        if shapes.is_empty() { "nothing: it has no rules".to_owned() } else { shapes.join(" or ") },
    )
}
