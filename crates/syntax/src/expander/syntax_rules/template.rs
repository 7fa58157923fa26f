//! Templates: compiling them, and making the form that the use of a macro expands to.

use super::pattern::Variables;
use super::{Match, NESTING_MAX, Words};
use crate::datum::{Datum, DatumKind, Home, Identifier};
use crate::error::SyntaxError;
use crate::expander::Expander;
use crate::expander::meaning::rename;
use crate::rules::{Element, Rule, Template};
use std::collections::HashMap;

/// Steps charged for making a datum; a comparison is one step.
const STEPS_PER_DATUM: u64 = 4;

struct Compiler<'a, 'e, 'w> {
    words: &'a Words<'e, 'w>,
    variables: &'a Variables,
    inserted: Vec<Identifier>,
    places: HashMap<Identifier, usize>,
    /// Whether the element is inside `(... template)`, where `...` is an ordinary identifier.
    escaped: bool,
    ellipses: u32,
    depth: u32,
}

/// A use of a pattern variable: its slot, the ellipses that it requires, and the ellipses around it
/// so far.
type Use = (usize, u32, u32);

pub(super) fn compile(
    template: &Datum,
    words: &Words<'_, '_>,
    variables: &Variables,
) -> Result<(Template, Vec<Identifier>), SyntaxError> {
    let mut compiler = Compiler {
        words,
        variables,
        inserted: Vec::new(),
        places: HashMap::new(),
        escaped: false,
        ellipses: 0,
        depth: 0,
    };
    let template = compiler.template(template, &mut Vec::new())?;
    Ok((template, compiler.inserted))
}

impl Compiler<'_, '_, '_> {
    fn is_ellipsis(&self, datum: &Datum) -> bool {
        !self.escaped && self.words.is_ellipsis(datum)
    }

    fn template(&mut self, template: &Datum, uses: &mut Vec<Use>) -> Result<Template, SyntaxError> {
        if let Some(identifier) = template.as_identifier() {
            return self.identifier(identifier, template, uses);
        }
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(SyntaxError::new(template.span, "this template is nested too deep")
                .expected(format!("at most {NESTING_MAX} levels")));
        }
        let compiled = match &*template.kind {
            DatumKind::Pair(..) => self.list(template, uses)?,
            DatumKind::Vector(items) => {
                let items: Vec<&Datum> = items.iter().collect();
                Template::Vector(self.elements(&items, uses)?)
            }
            _ => Template::Constant(template.clone()),
        };
        self.depth -= 1;
        Ok(compiled)
    }

    fn identifier(
        &mut self,
        identifier: Identifier,
        at: &Datum,
        uses: &mut Vec<Use>,
    ) -> Result<Template, SyntaxError> {
        if let Some(variable) = self.variables.get(&identifier) {
            if variable.ellipses > self.ellipses {
                return Err(SyntaxError::new(at.span, format!("`{at}` needs more ellipses here"))
                    .expected(format!("{} after it, as in the pattern", variable.ellipses)));
            }
            uses.push((variable.slot, variable.ellipses, 0));
            return Ok(Template::Slot(variable.slot));
        }
        if self.is_ellipsis(at) {
            return Err(SyntaxError::new(at.span, "a misplaced ellipsis in a template")
                .expected("it after what it repeats, or (... ...) for the ellipsis itself"));
        }
        let next = self.inserted.len();
        let place = *self.places.entry(identifier.clone()).or_insert(next);
        if place == next {
            self.inserted.push(identifier);
        }
        Ok(Template::Inserted(place))
    }

    fn list(&mut self, template: &Datum, uses: &mut Vec<Use>) -> Result<Template, SyntaxError> {
        let mut elements = template.elements();
        let items: Vec<&Datum> = elements.by_ref().collect();
        let tail = elements.tail();
        if self.is_ellipsis(items[0]) && items.len() == 2 && tail.is_nil() {
            self.escaped = true;
            let escaped = self.template(items[1], uses)?;
            self.escaped = false;
            return Ok(escaped);
        }
        let compiled = self.elements(&items, uses)?;
        let tail = self.template(tail, uses)?;
        Ok(Template::List(compiled, Box::new(tail)))
    }

    fn elements(
        &mut self,
        items: &[&Datum],
        uses: &mut Vec<Use>,
    ) -> Result<Vec<Element>, SyntaxError> {
        let mut compiled = Vec::new();
        let mut at = 0;
        while at < items.len() {
            let item = items[at];
            at += 1;
            let mut ellipses = 0;
            while at < items.len() && self.is_ellipsis(items[at]) {
                ellipses += 1;
                at += 1;
            }
            let mut inner = Vec::new();
            self.ellipses += ellipses;
            let template = self.template(item, &mut inner)?;
            self.ellipses -= ellipses;
            let mut repeating = Vec::new();
            for (slot, needed, over) in inner {
                let here = needed.saturating_sub(over).min(ellipses);
                repeating.extend((here > 0).then_some((slot, here)));
                uses.push((slot, needed, over + ellipses));
            }
            let most = repeating.iter().map(|(_, here)| *here).max().unwrap_or(0);
            if most < ellipses {
                return Err(SyntaxError::new(item.span, format!("nothing repeats in {item}"))
                    .expected("a pattern variable with an ellipsis, before each ellipsis"));
            }
            compiled.push(Element { template, ellipses, repeating });
        }
        Ok(compiled)
    }
}

/// Builds the expansion of the use `form` from the template of `rule` and `matches`.
pub(super) fn instantiate(
    rule: &Rule,
    matches: &[Match],
    home: Home,
    form: &Datum,
    expander: &mut Expander<'_>,
) -> Result<Datum, SyntaxError> {
    let aliases = vec![None; rule.inserted.len()];
    let mut maker = Maker { rule, home, form, expander, aliases };
    let matches: Vec<&Match> = matches.iter().collect();
    maker.make(&rule.template, &matches)
}

struct Maker<'a, 'w> {
    rule: &'a Rule,
    home: Home,
    form: &'a Datum,
    expander: &'a mut Expander<'w>,
    /// The alias that this use inserts for each identifier.
    aliases: Vec<Option<Datum>>,
}

impl Maker<'_, '_> {
    fn make(&mut self, template: &Template, matches: &[&Match]) -> Result<Datum, SyntaxError> {
        let span = self.form.span;
        self.expander.charge(STEPS_PER_DATUM, span)?;
        match template {
            Template::Slot(slot) => match matches[*slot] {
                Match::One(datum) => Ok(datum.clone()),
                Match::Many(_) => Err(self.uneven()),
            },
            Template::Inserted(place) => {
                if let Some(alias) = &self.aliases[*place] {
                    return Ok(alias.clone());
                }
                let alias = rename(&self.rule.inserted[*place], self.home, span)?;
                self.aliases[*place] = Some(alias.clone());
                Ok(alias)
            }
            Template::Constant(datum) => Ok(datum.clone()),
            Template::List(elements, tail) => {
                let items = self.make_all(elements, matches)?;
                let tail = self.make(tail, matches)?;
                let mut list = tail;
                for item in items.into_iter().rev() {
                    list = Datum::pair(item, list, span);
                }
                Ok(list)
            }
            Template::Vector(elements) => {
                Ok(Datum::new(DatumKind::Vector(self.make_all(elements, matches)?), span))
            }
        }
    }

    fn make_all(
        &mut self,
        elements: &[Element],
        matches: &[&Match],
    ) -> Result<Vec<Datum>, SyntaxError> {
        let mut items = Vec::new();
        for element in elements {
            self.repeat(element, element.ellipses, matches, &mut items)?;
        }
        Ok(items)
    }

    /// Builds `element` once for each repetition of its `remaining` innermost ellipses.
    fn repeat(
        &mut self,
        element: &Element,
        remaining: u32,
        matches: &[&Match],
        items: &mut Vec<Datum>,
    ) -> Result<(), SyntaxError> {
        if remaining == 0 {
            items.push(self.make(&element.template, matches)?);
            return Ok(());
        }
        let mut times = None;
        for &(slot, here) in &element.repeating {
            if here < remaining {
                continue;
            }
            let Match::Many(many) = matches[slot] else { return Err(self.uneven()) };
            if times.is_some_and(|times| times != many.len()) {
                return Err(self.uneven());
            }
            times = Some(many.len());
        }
        let mut inner = matches.to_vec();
        for time in 0..times.unwrap_or(0) {
            self.expander.charge(1 + matches.len() as u64 / 8, self.form.span)?;
            for &(slot, _) in element.repeating.iter().filter(|(_, here)| *here >= remaining) {
                inner[slot] = nth(matches[slot], time);
            }
            self.repeat(element, remaining - 1, &inner, items)?;
        }
        Ok(())
    }

    fn uneven(&self) -> SyntaxError {
        SyntaxError::in_form(self.form, "lists that a macro repeats together differ in length")
            .expected("as many of the one as of the other")
    }
}

fn nth(matched: &Match, time: usize) -> &Match {
    match matched {
        Match::Many(many) => &many[time],
        Match::One(_) => matched,
    }
}
