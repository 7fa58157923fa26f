//! Which pairs, vectors and records need a datum label.

use super::{Style, is_compound};
use crate::value::Value;
use std::collections::HashMap;

/// Places visited before a structure is taken for one that may be shared or cyclic. A walk that ends
/// sooner has seen every place as often as it will be printed: no cycle, no table needed.
const PLAIN_STEPS: usize = 1000;

/// The labelled places, each with its number once that is printed.
#[derive(Debug, Default)]
pub(super) struct Labels {
    places: HashMap<Value, Option<usize>>,
    next: usize,
}

/// A place's label, as it is to be printed here.
pub(super) struct Label {
    pub(super) number: usize,
    pub(super) is_first: bool,
}

impl Labels {
    /// The labels that printing `value` in that style needs.
    pub(super) fn of(value: Value, style: Style) -> Self {
        let places = match style {
            Style::Simple => HashMap::new(),
            Style::Shared => shared(value),
            Style::Write | Style::Display if is_small_tree(value) => HashMap::new(),
            Style::Write | Style::Display => cyclic(value),
        };
        Self { places, next: 0 }
    }

    pub(super) fn contains(&self, value: Value) -> bool {
        !self.places.is_empty() && self.places.contains_key(&value)
    }

    /// The label of a place, numbered on first use.
    pub(super) fn number(&mut self, value: Value) -> Option<Label> {
        if self.places.is_empty() {
            return None;
        }
        let number = self.places.get_mut(&value)?;
        let is_first = number.is_none();
        let number = *number.get_or_insert(self.next);
        self.next += usize::from(is_first);
        Some(Label { number, is_first })
    }
}

/// Puts what `value` holds on `open`.
fn expand(value: Value, open: &mut Vec<Value>) {
    if let Some((car, cdr)) = value.uncons() {
        open.extend([cdr, car]);
    } else {
        // A record's type, its first word, is not printed, and is no compound.
        open.extend((0..value.size_words()).rev().map(|i| value.field_at(i)));
    }
}

fn is_small_tree(value: Value) -> bool {
    let mut open = vec![value];
    for _ in 0..PLAIN_STEPS {
        let Some(value) = open.pop() else { return true };
        if is_compound(value) {
            if value.size_words() > PLAIN_STEPS {
                return false;
            }
            expand(value, &mut open);
        }
    }
    false
}

/// Places reached more than once.
fn shared(value: Value) -> HashMap<Value, Option<usize>> {
    let mut seen: HashMap<Value, bool> = HashMap::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        if !is_compound(value) {
            continue;
        }
        match seen.get_mut(&value) {
            Some(again) => *again = true,
            None => {
                seen.insert(value, false);
                expand(value, &mut open);
            }
        }
    }
    seen.into_iter().filter(|&(_, again)| again).map(|(value, _)| (value, None)).collect()
}

/// Places that a walk in printing order meets again while it is still inside them: one at least on
/// every cycle.
fn cyclic(value: Value) -> HashMap<Value, Option<usize>> {
    enum Visit {
        Enter(Value),
        Leave(Value),
    }
    let mut is_open: HashMap<Value, bool> = HashMap::new();
    let mut labelled = HashMap::new();
    let mut visits = vec![Visit::Enter(value)];
    let mut inside = Vec::new();
    while let Some(visit) = visits.pop() {
        match visit {
            Visit::Enter(value) if is_compound(value) => match is_open.get(&value) {
                Some(true) => {
                    labelled.insert(value, None);
                }
                Some(false) => {}
                None => {
                    is_open.insert(value, true);
                    visits.push(Visit::Leave(value));
                    expand(value, &mut inside);
                    visits.extend(inside.drain(..).map(Visit::Enter));
                }
            },
            Visit::Enter(_) => {}
            Visit::Leave(value) => {
                is_open.insert(value, false);
            }
        }
    }
    labelled
}
