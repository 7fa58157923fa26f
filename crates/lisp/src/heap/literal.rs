//! From a datum to a value: quoted constants, and what `read` returns.
//!
//! Iterative, with explicit stacks: a datum may be nested deeper than a small thread's stack. A
//! reference to a label that is still being built is a placeholder, replaced at the end.

use crate::heap::object::{FLAG_IMMUTABLE, Kind};
use crate::heap::{Mutator, OutOfMemory};
use crate::syntax::datum::{Datum, DatumKind, NumberLiteral};
use crate::value::Value;
use std::collections::{HashMap, HashSet};

enum Step<'a> {
    Build(&'a Datum),
    /// So many items lie on the results, and the tail above them.
    List(usize),
    Vector(usize),
    EndLabel(u64),
}

#[derive(Default)]
struct Labels {
    /// A label's value; its placeholder while it is being built.
    known: HashMap<u64, Value>,
    replacements: HashMap<Value, Value>,
}

impl Mutator {
    /// The value that `datum` writes, new and the caller's to change. A reference to a label that nobody defined is unspecified.
    ///
    /// # Errors
    /// When the heap's limit is reached.
    pub fn literal(&mut self, datum: &Datum) -> Result<Value, OutOfMemory> {
        self.literal_with(datum, 0)
    }

    /// The same as a constant of a program: mutators refuse its pairs, strings, vectors and bytevectors.
    ///
    /// # Errors
    /// When the heap's limit is reached.
    pub(crate) fn constant(&mut self, datum: &Datum) -> Result<Value, OutOfMemory> {
        self.literal_with(datum, FLAG_IMMUTABLE)
    }

    /// `flags` are those of the strings, vectors and bytevectors; pairs, which have none, say the same by their tag.
    fn literal_with(&mut self, datum: &Datum, flags: u8) -> Result<Value, OutOfMemory> {
        let mut labels = Labels::default();
        let mut steps = vec![Step::Build(datum)];
        let mut results = Vec::new();
        while let Some(step) = steps.pop() {
            let value = match step {
                Step::Build(datum) => match self.literal_atom(datum, flags, &mut labels)? {
                    Some(atom) => atom,
                    None => {
                        self.expand_literal(datum, &mut steps, &mut labels)?;
                        continue;
                    }
                },
                Step::List(items) => {
                    let tail = results.pop().unwrap_or(Value::NIL);
                    let items = results.split_off(results.len() - items);
                    self.literal_list(&items, tail, flags)?
                }
                Step::Vector(elements) => {
                    let elements = results.split_off(results.len() - elements);
                    flagged(self.vector_of(&elements)?, flags)
                }
                Step::EndLabel(label) => {
                    labels.define(label, results.pop().unwrap_or(Value::UNSPECIFIED))
                }
            };
            results.push(value);
        }
        let value = results.pop().unwrap_or(Value::UNSPECIFIED);
        Ok(if labels.replacements.is_empty() { value } else { labels.replace_in(value) })
    }

    fn literal_list(
        &mut self,
        items: &[Value],
        tail: Value,
        flags: u8,
    ) -> Result<Value, OutOfMemory> {
        if flags & FLAG_IMMUTABLE == 0 {
            return self.list_onto(items, tail);
        }
        let cons = |list, &item| Ok(self.cons(item, list)?.into_literal_pair());
        items.iter().rev().try_fold(tail, cons)
    }

    /// The value of a datum without parts.
    fn literal_atom(
        &mut self,
        datum: &Datum,
        flags: u8,
        labels: &mut Labels,
    ) -> Result<Option<Value>, OutOfMemory> {
        Ok(Some(match &*datum.kind {
            DatumKind::Boolean(truth) => Value::boolean(*truth),
            DatumKind::Character(c) => Value::character(*c),
            DatumKind::String(text) => flagged(self.string(text)?, flags),
            DatumKind::Symbol(symbol) => Value::symbol(*symbol),
            DatumKind::Alias(alias) => Value::symbol(alias.of.symbol()),
            DatumKind::Number(number) => self.literal_number(number)?,
            DatumKind::Nil => Value::NIL,
            DatumKind::Bytevector(bytes) => flagged(self.bytevector(bytes)?, flags),
            DatumKind::Reference(label) => {
                labels.known.get(label).copied().unwrap_or(Value::UNSPECIFIED)
            }
            DatumKind::Pair(..) | DatumKind::Vector(_) | DatumKind::Label(..) => return Ok(None),
        }))
    }

    /// Puts the parts of a datum on the steps, so that they come off left to right.
    fn expand_literal<'a>(
        &mut self,
        datum: &'a Datum,
        steps: &mut Vec<Step<'a>>,
        labels: &mut Labels,
    ) -> Result<(), OutOfMemory> {
        match &*datum.kind {
            DatumKind::Pair(first, rest) => {
                let mut items = vec![first];
                let mut tail = rest;
                while let DatumKind::Pair(item, rest) = &*tail.kind {
                    items.push(item);
                    tail = rest;
                }
                steps.push(Step::List(items.len()));
                steps.push(Step::Build(tail));
                steps.extend(items.into_iter().rev().map(Step::Build));
            }
            DatumKind::Vector(elements) => {
                steps.push(Step::Vector(elements.len()));
                steps.extend(elements.iter().rev().map(Step::Build));
            }
            DatumKind::Label(label, labelled) => {
                let placeholder = self.cell(Value::UNSPECIFIED)?;
                labels.known.insert(*label, placeholder);
                steps.push(Step::EndLabel(*label));
                steps.push(Step::Build(labelled));
            }
            _ => {}
        }
        Ok(())
    }

    fn literal_number(&mut self, number: &NumberLiteral) -> Result<Value, OutOfMemory> {
        match number {
            NumberLiteral::Integer(n) => match Value::fixnum_checked(*n) {
                Some(fixnum) => Ok(fixnum),
                None => self.integer(&(*n).into()),
            },
            NumberLiteral::Big(n) => self.integer(n),
            NumberLiteral::Ratio(ratio) => {
                let numerator = self.integer(ratio.numer())?;
                let denominator = self.integer(ratio.denom())?;
                self.object_of(Kind::Ratio, &[numerator, denominator])
            }
            NumberLiteral::Real(number) => self.flonum(*number),
            NumberLiteral::Complex(parts) => {
                let real = self.literal_number(&parts[0])?;
                let imaginary = self.literal_number(&parts[1])?;
                self.object_of(Kind::Complex, &[real, imaginary])
            }
        }
    }
}

fn flagged(value: Value, flags: u8) -> Value {
    if flags != 0 {
        value.set_flags(flags);
    }
    value
}

impl Labels {
    /// The label's value is complete: its placeholder stands for it from now on.
    fn define(&mut self, label: u64, value: Value) -> Value {
        if let Some(placeholder) = self.known.insert(label, value) {
            self.replacements.insert(placeholder, value);
        }
        value
    }

    /// What stands for `value`: the end of its chain of placeholders.
    fn resolve(&self, mut value: Value) -> Value {
        // A label of nothing but itself, `#0=#0#`, is a chain without an end: bounded by the count.
        for _ in 0..=self.replacements.len() {
            match self.replacements.get(&value) {
                Some(&next) => value = next,
                None => return value,
            }
        }
        Value::UNSPECIFIED
    }

    /// Replaces the placeholders in everything `root` reaches.
    fn replace_in(&self, root: Value) -> Value {
        let root = self.resolve(root);
        let mut seen = HashSet::new();
        let mut pending = vec![root];
        while let Some(value) = pending.pop() {
            if !(value.is_pair() || value.is_kind(Kind::Vector)) || !seen.insert(value) {
                continue;
            }
            if let Some((car, cdr)) = value.uncons() {
                let (car, cdr) = (self.resolve(car), self.resolve(cdr));
                value.fill_pair(car, cdr);
                pending.extend([car, cdr]);
            }
            for i in 0..value.vector_length().unwrap_or(0) {
                let element = self.resolve(value.field_at(i));
                value.set_field_at(i, element);
                pending.push(element);
            }
        }
        root
    }
}

#[cfg(test)]
mod tests;
