//! Patterns: compiling them, and matching the use of a macro with them.

use super::{Match, NESTING_MAX, Words};
use crate::datum::{Datum, DatumKind, Home, Identifier};
use crate::error::SyntaxError;
use crate::expander::Expander;
use crate::rules::{Pattern, Repeated, Sequence};
use std::collections::HashMap;

/// A pattern variable: its slot and the number of ellipses after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    pub(super) slot: usize,
    pub(super) ellipses: u32,
}

pub(super) type Variables = HashMap<Identifier, Variable>;

struct Compiler<'a, 'e, 'w> {
    words: &'a Words<'e, 'w>,
    variables: Variables,
    ellipses: u32,
    depth: u32,
}

pub(super) fn compile(
    pattern: &Datum,
    words: &Words<'_, '_>,
) -> Result<(Pattern, Variables), SyntaxError> {
    let mut compiler = Compiler { words, variables: Variables::new(), ellipses: 0, depth: 0 };
    let pattern = compiler.pattern(pattern)?;
    Ok((pattern, compiler.variables))
}

impl Compiler<'_, '_, '_> {
    fn pattern(&mut self, pattern: &Datum) -> Result<Pattern, SyntaxError> {
        if let Some(identifier) = pattern.as_identifier() {
            return self.identifier(identifier, pattern);
        }
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(SyntaxError::new(pattern.span, "this pattern is nested too deep")
                .expected(format!("at most {NESTING_MAX} levels")));
        }
        let compiled = match &*pattern.kind {
            DatumKind::Pair(..) | DatumKind::Nil => {
                let mut elements = pattern.elements();
                let items: Vec<&Datum> = elements.by_ref().collect();
                let sequence = self.sequence(&items, elements.tail())?;
                Pattern::List(Box::new(sequence))
            }
            DatumKind::Vector(items) => {
                let items: Vec<&Datum> = items.iter().collect();
                let sequence = self.sequence(&items, &Datum::nil(pattern.span))?;
                Pattern::Vector(Box::new(sequence))
            }
            DatumKind::Label(..) | DatumKind::Reference(_) => {
                return Err(SyntaxError::in_form(pattern, "a label in a pattern"));
            }
            _ => Pattern::Equal(pattern.clone()),
        };
        self.depth -= 1;
        Ok(compiled)
    }

    fn identifier(&mut self, identifier: Identifier, at: &Datum) -> Result<Pattern, SyntaxError> {
        if self.words.is_literal(&identifier) {
            return Ok(Pattern::Literal(identifier));
        }
        if self.words.is_underscore(&identifier) {
            return Ok(Pattern::Anything);
        }
        if self.words.is_ellipsis(at) {
            return Err(SyntaxError::new(at.span, "a misplaced ellipsis in a pattern")
                .expected("one ellipsis, after a pattern, in each list"));
        }
        let variable = Variable { slot: self.variables.len(), ellipses: self.ellipses };
        if self.variables.insert(identifier, variable).is_some() {
            let message = format!("pattern variable `{at}` stands twice");
            return Err(SyntaxError::new(at.span, message).expected("distinct pattern variables"));
        }
        Ok(Pattern::Slot(variable.slot))
    }

    fn sequence(&mut self, items: &[&Datum], tail: &Datum) -> Result<Sequence, SyntaxError> {
        let ellipsis = items.iter().position(|item| self.words.is_ellipsis(item));
        let fixed = match ellipsis {
            // An ellipsis at the head of a list has nothing to repeat: `identifier` reports the
            // error.
            Some(at) => at.saturating_sub(1),
            None => items.len(),
        };
        let before =
            items[..fixed].iter().map(|item| self.pattern(item)).collect::<Result<_, _>>()?;
        let mut sequence = Sequence { before, repeated: None, after: Vec::new(), tail: None };
        if let Some(at) = ellipsis {
            let first_slot = self.variables.len();
            self.ellipses += 1;
            let pattern = self.pattern(items[fixed])?;
            self.ellipses -= 1;
            let slots = (first_slot..self.variables.len()).collect();
            sequence.repeated = Some(Repeated { pattern, slots });
            let after = &items[at + 1..];
            sequence.after =
                after.iter().map(|item| self.pattern(item)).collect::<Result<_, _>>()?;
        }
        if !tail.is_nil() {
            sequence.tail = Some(self.pattern(tail)?);
        }
        Ok(sequence)
    }
}

/// One attempt to match.
pub(super) struct Matcher<'e, 'w> {
    expander: &'e Expander<'w>,
    /// The scope of the macro's definition, which determines the meaning of literals.
    definition: Home,
    /// The scope of the macro's use, which determines the meaning of the form's identifiers.
    used: Home,
    matches: Vec<Match>,
    steps: u64,
}

impl<'e, 'w> Matcher<'e, 'w> {
    pub(super) fn new(
        expander: &'e Expander<'w>,
        definition: Home,
        used: Home,
        slots: usize,
    ) -> Self {
        let matches = vec![Match::Many(Vec::new()); slots];
        Self { expander, definition, used, matches, steps: 1 }
    }

    /// The content of the slots, and the steps taken.
    pub(super) fn finish(self) -> (Vec<Match>, u64) {
        (self.matches, self.steps)
    }

    pub(super) fn matches(&mut self, pattern: &Pattern, datum: &Datum) -> bool {
        self.steps += 1;
        match pattern {
            Pattern::Anything => true,
            Pattern::Slot(slot) => {
                self.matches[*slot] = Match::One(datum.clone());
                true
            }
            Pattern::Literal(literal) => self.is_literal(literal, datum),
            Pattern::Equal(expected) => equal(expected, datum),
            Pattern::List(sequence) => self.sequence(sequence, datum),
            Pattern::Vector(sequence) => match &*datum.kind {
                DatumKind::Vector(items) => {
                    self.steps += items.len() as u64;
                    self.sequence(sequence, &Datum::list(items.clone(), datum.span))
                }
                _ => false,
            },
        }
    }

    fn is_literal(&self, literal: &Identifier, datum: &Datum) -> bool {
        datum.as_identifier().is_some_and(|identifier| {
            let expected = self.expander.resolve(literal, self.definition);
            self.expander.resolve(&identifier, self.used).is_same(&expected)
        })
    }

    fn sequence(&mut self, sequence: &Sequence, datum: &Datum) -> bool {
        let Some(mut rest) = self.fixed(&sequence.before, datum) else { return false };
        if let Some(repeated) = &sequence.repeated {
            let available = rest.elements().count();
            self.steps += available as u64;
            let Some(times) = available.checked_sub(sequence.after.len()) else { return false };
            let after = self
                .repeated(repeated, rest, times)
                .and_then(|rest| self.fixed(&sequence.after, rest));
            let Some(after) = after else { return false };
            rest = after;
        }
        match &sequence.tail {
            Some(pattern) => self.matches(pattern, rest),
            None => rest.is_nil(),
        }
    }

    /// Matches one element with each pattern. Returns the elements that follow.
    fn fixed<'d>(&mut self, patterns: &[Pattern], datum: &'d Datum) -> Option<&'d Datum> {
        let mut rest = datum;
        for pattern in patterns {
            let (item, next) = rest.as_pair()?;
            if !self.matches(pattern, item) {
                return None;
            }
            rest = next;
        }
        Some(rest)
    }

    /// Matches `times` elements and collects the content of each slot. Returns the elements that
    /// follow.
    fn repeated<'d>(
        &mut self,
        repeated: &Repeated,
        datum: &'d Datum,
        times: usize,
    ) -> Option<&'d Datum> {
        let mut gathered: Vec<Vec<Match>> =
            repeated.slots.iter().map(|_| Vec::with_capacity(times)).collect();
        let mut rest = datum;
        for _ in 0..times {
            let (item, next) = rest.as_pair()?;
            if !self.matches(&repeated.pattern, item) {
                return None;
            }
            for (slot, gathered) in repeated.slots.iter().zip(&mut gathered) {
                let empty = Match::Many(Vec::new());
                gathered.push(core::mem::replace(&mut self.matches[*slot], empty));
            }
            rest = next;
        }
        for (slot, gathered) in repeated.slots.iter().zip(gathered) {
            self.matches[*slot] = Match::Many(gathered);
        }
        Some(rest)
    }
}

/// Whether a constant in a pattern and a datum are `equal?`.
fn equal(expected: &Datum, datum: &Datum) -> bool {
    match (&*expected.kind, &*datum.kind) {
        (DatumKind::Boolean(a), DatumKind::Boolean(b)) => a == b,
        (DatumKind::Character(a), DatumKind::Character(b)) => a == b,
        (DatumKind::String(a), DatumKind::String(b)) => a == b,
        (DatumKind::Number(a), DatumKind::Number(b)) => a == b,
        (DatumKind::Bytevector(a), DatumKind::Bytevector(b)) => a == b,
        _ => false,
    }
}
