//! Atoms of the deep-binding evaluator: one object for each name, as on the object list of a
//! classic Lisp.
//!
//! ```text
//! [name symbol][global value][special form's number, or #f]
//! ```
//!
//! A program's text is loaded as lists of atoms before it runs. Its cells come from a separate
//! cache, because loading is not part of the experiment.

use core::fmt::Write;
use kyocho_heap::heap::object::FLAG_OWN;
use kyocho_heap::heap::{Kind, Mutator, OutOfMemory};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Datum;
use kyocho_syntax::symbol::Symbol;
use std::collections::{HashMap, HashSet};

const NAME: usize = 0;
const GLOBAL: usize = 1;
const SPECIAL: usize = 2;
/// An atom that names a special form.
const FLAG_SPECIAL: u8 = FLAG_OWN;

/// All atoms; roots of the collector.
#[derive(Debug, Default)]
pub(super) struct Atoms(HashMap<Symbol, Value>);

impl Atoms {
    pub(super) fn intern(&mut self, m: &mut Mutator, name: Symbol) -> Result<Value, OutOfMemory> {
        if let Some(&atom) = self.0.get(&name) {
            return Ok(atom);
        }
        let atom =
            m.object_of(Kind::Record, &[Value::symbol(name), Value::UNBOUND, Value::FALSE])?;
        self.0.insert(name, atom);
        Ok(atom)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = Value> {
        self.0.values().copied()
    }

    /// A datum in the evaluator's form, with an atom for every symbol.
    pub(super) fn load(&mut self, m: &mut Mutator, datum: &Datum) -> Result<Value, OutOfMemory> {
        // No other thread runs, so memory is the only possible failure.
        let root = m.literal(datum).map_err(|_| OutOfMemory)?;
        let mut seen = HashSet::new();
        let mut pending = vec![root];
        while let Some(value) = pending.pop() {
            if !seen.insert(value) {
                continue;
            }
            if let Some((car, cdr)) = value.uncons() {
                let (car, cdr) = (self.atom_for(m, car)?, self.atom_for(m, cdr)?);
                let _ = value.set_car(car) && value.set_cdr(cdr);
                pending.extend([car, cdr]);
            }
            for i in 0..value.vector_length().unwrap_or(0) {
                let element = self.atom_for(m, value.field_at(i))?;
                value.set_field_at(i, element);
                pending.push(element);
            }
        }
        self.atom_for(m, root)
    }

    fn atom_for(&mut self, m: &mut Mutator, value: Value) -> Result<Value, OutOfMemory> {
        match value.as_symbol() {
            Some(name) => self.intern(m, name),
            None => Ok(value),
        }
    }
}

/// Whether `value` is an atom with a name.
#[inline]
pub(super) fn is_atom(value: Value) -> bool {
    value.is_kind(Kind::Record)
}

pub(super) fn name(atom: Value) -> Symbol {
    atom.field_at(NAME).as_symbol().expect("an atom's first word is its name")
}

#[inline]
pub(super) fn global(atom: Value) -> Value {
    atom.field_at(GLOBAL)
}

pub(super) fn set_global(atom: Value, value: Value) {
    atom.set_field_at(GLOBAL, value);
}

/// The role of an expression's first element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The name of a special form, by its number.
    Special(usize),
    /// Another name.
    Variable,
    /// Not a name.
    Other,
}

#[inline]
pub(super) fn role(value: Value) -> Role {
    match value.header() {
        Some(header) if header.is(Kind::Record) => {
            if header.flags() & FLAG_SPECIAL == 0 {
                Role::Variable
            } else {
                Role::Special(value.field_at(SPECIAL).as_fixnum().unwrap_or(0) as usize)
            }
        }
        _ => Role::Other,
    }
}

pub(super) fn set_special(atom: Value, number: usize) {
    atom.set_field_at(SPECIAL, Value::fixnum(number as i64));
    atom.set_flags(FLAG_SPECIAL);
}

/// A value as text. Shows at most [`SHOWN_MAX`] parts, so that cycles end.
pub(super) fn show(value: Value, quote_strings: bool) -> String {
    let mut shown = Shown { text: String::new(), parts: 0, quote_strings };
    shown.value(value, 0);
    shown.text
}

const SHOWN_MAX: usize = 10_000;
const SHOWN_DEPTH_MAX: usize = 100;

struct Shown {
    text: String,
    parts: usize,
    quote_strings: bool,
}

impl Shown {
    fn value(&mut self, value: Value, depth: usize) {
        self.parts += 1;
        if self.parts > SHOWN_MAX || depth > SHOWN_DEPTH_MAX {
            self.text.push_str("...");
        } else if value.is_pair() {
            self.list(value, depth);
        } else if let Some(length) = value.vector_length() {
            self.text.push_str("#(");
            for i in 0..length.min(SHOWN_MAX) {
                self.separate(i > 0);
                self.value(value.field_at(i), depth + 1);
            }
            self.text.push(')');
        } else {
            self.leaf(value);
        }
    }

    fn separate(&mut self, needed: bool) {
        if needed {
            self.text.push(' ');
        }
    }

    fn list(&mut self, mut list: Value, depth: usize) {
        self.text.push('(');
        let mut first = true;
        while let Some((car, cdr)) = list.uncons() {
            self.separate(!first);
            first = false;
            self.value(car, depth + 1);
            if self.parts > SHOWN_MAX {
                break;
            }
            list = cdr;
        }
        if !list.is_nil() && !list.is_pair() {
            self.text.push_str(" . ");
            self.value(list, depth + 1);
        }
        self.text.push(')');
    }

    fn leaf(&mut self, value: Value) {
        if let Some(n) = value.as_fixnum() {
            let _ = write!(self.text, "{n}");
        } else if is_atom(value) {
            self.text.push_str(name(value).name());
        } else if let Some(text) = value.to_text() {
            if self.quote_strings {
                let _ = write!(self.text, "{text:?}");
            } else {
                self.text.push_str(&text);
            }
        } else if let Some(number) = value.as_flonum() {
            let _ = write!(self.text, "{number}");
        } else if let Some(c) = value.as_character() {
            self.text.push(c);
        } else {
            self.text.push_str(match value {
                Value::NIL => "()",
                Value::TRUE => "#t",
                Value::FALSE => "#f",
                _ if value.is_kind(Kind::Closure) => "#<procedure>",
                _ if value.is_kind(Kind::Primitive) => "#<primitive>",
                _ => "#<unspecified>",
            });
        }
    }
}
