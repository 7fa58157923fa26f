//! From a datum to a value: quoted constants, and the results of `read`.
//!
//! Iterative with explicit stacks, because a datum may be nested deeper than a thread's stack
//! allows. A reference to a label whose datum is not finished is a placeholder, which is replaced
//! at the end.

use crate::heap::object::{FLAG_IMMUTABLE, Kind};
use crate::heap::pause::{PART, parts};
use crate::heap::{Mutator, OutOfMemory};
use crate::raise::Result;
use crate::value::Value;
use kyocho_syntax::datum::{Datum, DatumKind, NumberLiteral};
use std::collections::{HashMap, HashSet};

enum Step<'a> {
    Build(&'a Datum),
    /// The rest of a list, after the items that are on the result stack.
    Rest(&'a Datum, usize),
    /// A list: this many items are on the result stack, below its tail.
    List(usize),
    /// A vector, of which this many elements are on the result stack.
    Elements(&'a [Datum], usize),
    EndLabel(u64),
}

#[derive(Default)]
struct Labels {
    /// The value of each label; a placeholder while it is under construction.
    known: HashMap<u64, Value>,
    replacements: HashMap<Value, Value>,
}

impl Mutator {
    /// A new, mutable value for `datum`. A reference to an undefined label becomes the unspecified
    /// value.
    ///
    /// # Errors
    /// The heap's limit is reached; or the thread must end or stop.
    pub fn literal(&mut self, datum: &Datum) -> Result {
        self.keeping(&[], |m| m.literal_with(datum, 0))
    }

    /// As [`Mutator::literal`], for a constant of a program: its pairs, strings, vectors and
    /// bytevectors are immutable.
    ///
    /// # Errors
    /// As [`Mutator::literal`].
    pub fn constant(&mut self, datum: &Datum) -> Result {
        self.keeping(&[], |m| m.literal_with(datum, FLAG_IMMUTABLE))
    }

    /// `flags` are set in strings, vectors and bytevectors. Pairs have no flags; their tag says the
    /// same. Keeps the labels' values alive.
    fn literal_with(&mut self, datum: &Datum, flags: u8) -> Result {
        let mut labels = Labels::default();
        let mut steps = vec![Step::Build(datum)];
        let mut results = Vec::new();
        let mut done = 0_usize;
        while let Some(step) = steps.pop() {
            match step {
                Step::Build(datum) => match &*datum.kind {
                    DatumKind::Pair(..) => steps.push(Step::Rest(datum, 0)),
                    DatumKind::Vector(elements) => steps.push(Step::Elements(elements, 0)),
                    DatumKind::Label(label, labelled) => {
                        let placeholder = self.cell(Value::UNSPECIFIED)?;
                        labels.known.insert(*label, self.keep(placeholder));
                        steps.extend([Step::EndLabel(*label), Step::Build(labelled)]);
                    }
                    DatumKind::Reference(label) => {
                        let known = labels.known.get(label).copied();
                        results.push(known.unwrap_or(Value::UNSPECIFIED));
                    }
                    atom => results.push(self.literal_atom(atom, flags)?),
                },
                Step::Rest(datum, items) => match &*datum.kind {
                    DatumKind::Pair(item, rest) => {
                        steps.extend([Step::Rest(rest, items + 1), Step::Build(item)]);
                    }
                    _ => steps.extend([Step::List(items), Step::Build(datum)]),
                },
                Step::List(items) => self.literal_list(items, &mut results, flags)?,
                Step::Elements(elements, from) => match elements.get(from) {
                    Some(element) => {
                        steps.extend([Step::Elements(elements, from + 1), Step::Build(element)]);
                    }
                    None => {
                        let elements = results.split_off(results.len() - from);
                        results.push(flagged(self.vector_of(&elements)?, flags));
                    }
                },
                Step::EndLabel(label) => {
                    labels.define(label, self.keep(results.last().copied().unwrap_or(Value::NIL)));
                }
            }
            done += 1;
            if done.is_multiple_of(PART) {
                self.pause_with(&mut results)?;
            }
        }
        let value = results.pop().unwrap_or(Value::UNSPECIFIED);
        if labels.replacements.is_empty() {
            return Ok(value);
        }
        labels.replace_in(self, value)
    }

    /// Makes a list of the last `items` results below its tail.
    fn literal_list(&mut self, items: usize, results: &mut Vec<Value>, flags: u8) -> Result<()> {
        let is_constant = flags & FLAG_IMMUTABLE != 0;
        let made = |pair: Value| if is_constant { pair.into_literal_pair() } else { pair };
        let mut list = results.pop().unwrap_or(Value::NIL);
        for part in parts(0..items) {
            let is_whole = part.len() == PART;
            for _ in part {
                list = made(self.cons(results.pop().unwrap_or(Value::NIL), list)?);
            }
            if is_whole {
                results.push(list);
                self.pause_with(results)?;
                results.pop();
            }
        }
        results.push(list);
        Ok(())
    }

    /// The value of a datum without parts.
    fn literal_atom(&mut self, atom: &DatumKind, flags: u8) -> Result {
        Ok(match atom {
            DatumKind::Boolean(truth) => Value::boolean(*truth),
            DatumKind::Character(c) => Value::character(*c),
            DatumKind::String(text) => flagged(self.string(text)?, flags),
            DatumKind::Symbol(symbol) => Value::symbol(*symbol),
            DatumKind::Alias(alias) => Value::symbol(alias.of.symbol()),
            DatumKind::Number(number) => self.literal_number(number)?,
            DatumKind::Bytevector(bytes) => flagged(self.bytevector(bytes)?, flags),
            // Data with parts are made elsewhere.
            DatumKind::Nil
            | DatumKind::Pair(..)
            | DatumKind::Vector(_)
            | DatumKind::Label(..)
            | DatumKind::Reference(_) => Value::NIL,
        })
    }

    fn literal_number(
        &mut self,
        number: &NumberLiteral,
    ) -> core::result::Result<Value, OutOfMemory> {
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
    /// Sets the finished value of a label; its placeholder now refers to it.
    fn define(&mut self, label: u64, value: Value) {
        if let Some(placeholder) = self.known.insert(label, value) {
            self.replacements.insert(placeholder, value);
        }
    }

    /// The value at the end of a chain of placeholders.
    fn resolve(&self, mut value: Value) -> Value {
        // A label defined as itself, `#0=#0#`, is a chain without an end, so the number of steps is
        // bounded.
        for _ in 0..=self.replacements.len() {
            match self.replacements.get(&value) {
                Some(&next) => value = next,
                None => return value,
            }
        }
        Value::UNSPECIFIED
    }

    /// Replaces the placeholders in everything reachable from `root`.
    fn replace_in(&self, m: &mut Mutator, root: Value) -> Result {
        let root = self.resolve(root);
        let mut seen = HashSet::new();
        let mut pending = vec![root];
        let mut done = 0_usize;
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
            done += 1;
            if done.is_multiple_of(PART) {
                m.pause(&[root])?;
            }
        }
        Ok(root)
    }
}

#[cfg(test)]
mod tests;
