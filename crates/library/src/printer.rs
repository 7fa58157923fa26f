//! Values as text: `write`, `display`, `write-shared`, `write-simple`.
//!
//! The printer loops over an explicit stack of tasks, so deep data need no deep native stack.
//! `write` and `display` label cycles, `write-shared` all shared structure. Bound:
//! [`TEXT_BYTES_MAX`]. Longer output is an error, as when `write-simple` prints a cycle.

mod atom;
mod labels;
#[cfg(test)]
mod tests;

pub use atom::{write_character, write_string, write_symbol};

use core::fmt::Write;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::heap::pause::PART;
use kyocho_heap::raise;
use kyocho_heap::value::Value;
use labels::Labels;

/// Maximum number of bytes of one value's text.
pub const TEXT_BYTES_MAX: usize = 256 << 20;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `read` can read the text; cycles have labels.
    Write,
    /// As `Write`, with labels for all shared structure.
    Shared,
    /// As `Write`, without labels.
    Simple,
    /// For people: strings and characters without quotes and escapes.
    Display,
}

/// A value's text is longer than permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// A task of the printer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Value(Value),
    /// The rest of a list after an element.
    Tail(Value),
    /// Elements of a vector from an index on.
    Elements(Value, usize),
    /// Fields of a record from an index on.
    Fields(Value, usize),
}

/// Tasks encoded as values, the next one last, so that a pause can keep them alive.
#[derive(Debug, Default)]
struct Tasks(Vec<Value>);

impl Tasks {
    const KINDS: i64 = 4;

    fn push(&mut self, task: Task) {
        let (value, kind, i) = match task {
            Task::Value(value) => (value, 0, 0),
            Task::Tail(value) => (value, 1, 0),
            Task::Elements(value, i) => (value, 2, i),
            Task::Fields(value, i) => (value, 3, i),
        };
        self.0.extend([value, Value::fixnum(i as i64 * Self::KINDS + kind)]);
    }

    fn pop(&mut self) -> Option<Task> {
        let code = self.0.pop()?.as_fixnum()?;
        let value = self.0.pop()?;
        let i = (code / Self::KINDS) as usize;
        Some(match code % Self::KINDS {
            0 => Task::Value(value),
            1 => Task::Tail(value),
            2 => Task::Elements(value, i),
            _ => Task::Fields(value, i),
        })
    }
}

/// The text of `value`.
///
/// # Errors
/// The text is too long.
pub fn to_text(value: Value, style: Style) -> Result<String, TooLong> {
    let mut out = String::new();
    print(&mut out, value, style)?;
    Ok(out)
}

/// The text of `value`, of at most `bytes_max` and [`TEXT_BYTES_MAX`] bytes.
///
/// # Errors
/// The text is too long.
pub fn to_short_text(value: Value, style: Style, bytes_max: usize) -> Result<String, TooLong> {
    let mut out = String::new();
    print_within(&mut out, value, style, bytes_max.min(TEXT_BYTES_MAX))?;
    Ok(out)
}

/// As [`to_text`], for an argument, in slices. `None` if the text is too long.
///
/// # Errors
/// As [`Mutator::pause`].
pub(crate) fn to_text_in_parts(
    m: &mut Mutator,
    value: Value,
    style: Style,
    bytes_max: usize,
) -> raise::Result<Option<String>> {
    let mut out = String::new();
    let printed = Printer::run(&mut out, value, style, bytes_max.min(TEXT_BYTES_MAX), Some(m))?;
    Ok(printed.is_ok().then_some(out))
}

/// Maximum number of bytes of a value's text in a message or at a prompt.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The text of `value` as `write` prints it, or a note that it is too long: for messages.
#[must_use]
pub fn to_message(value: Value) -> String {
    to_short_text(value, Style::Write, MESSAGE_BYTES_MAX)
        .unwrap_or_else(|TooLong| "#<too long to print>".to_owned())
}

/// Appends the text of `value`.
///
/// # Errors
/// The text is too long; `out` then has its beginning.
pub fn print(out: &mut String, value: Value, style: Style) -> Result<(), TooLong> {
    print_within(out, value, style, out.len() + TEXT_BYTES_MAX)
}

/// Appends the text of `value` while `out` has at most `limit` bytes.
fn print_within(out: &mut String, value: Value, style: Style, limit: usize) -> Result<(), TooLong> {
    // There are no pauses, so nothing is raised.
    Printer::run(out, value, style, limit, None).unwrap_or(Err(TooLong))
}

/// Whether `value` has parts that are printed.
fn is_compound(value: Value) -> bool {
    value.is_pair() || matches!(value.kind(), Some(Kind::Vector | Kind::Record))
}

struct Printer {
    labels: Labels,
    style: Style,
    open: Tasks,
}

impl Printer {
    fn run(
        out: &mut String,
        value: Value,
        style: Style,
        limit: usize,
        mut m: Option<&mut Mutator>,
    ) -> raise::Result<Result<(), TooLong>> {
        let labels = match is_compound(value) {
            true => Labels::of(value, style, &mut m)?,
            false => Labels::default(),
        };
        let mut printer = Self { labels, style, open: Tasks::default() };
        printer.open.push(Task::Value(value));
        let mut steps = 0_usize;
        while let Some(task) = printer.open.pop() {
            printer.step(out, task);
            if out.len() > limit {
                return Ok(Err(TooLong));
            }
            steps += 1;
            if let Some(m) = &mut m
                && steps.is_multiple_of(PART)
            {
                m.pause_with(&mut printer.open.0)?;
            }
        }
        Ok(Ok(()))
    }

    fn step(&mut self, out: &mut String, task: Task) {
        match task {
            Task::Value(value) if is_compound(value) => self.compound(out, value),
            Task::Value(value) => atom::print(out, value, self.style),
            Task::Tail(Value::NIL) => out.push(')'),
            Task::Tail(tail) => match tail.uncons() {
                Some((car, cdr)) if !self.labels.contains(tail) => {
                    out.push(' ');
                    self.open.push(Task::Tail(cdr));
                    self.open.push(Task::Value(car));
                }
                _ => {
                    out.push_str(" . ");
                    self.open.push(Task::Tail(Value::NIL));
                    self.open.push(Task::Value(tail));
                }
            },
            Task::Elements(vector, i) => self.elements(out, vector, i),
            Task::Fields(record, i) => self.fields(out, record, i),
        }
    }

    fn compound(&mut self, out: &mut String, value: Value) {
        if let Some(label) = self.labels.number(value) {
            // Writing to a string cannot fail.
            let _ = write!(out, "#{}{}", label.number, if label.is_first { '=' } else { '#' });
            if !label.is_first {
                return;
            }
        }
        let Some((car, cdr)) = value.uncons() else {
            match value.kind() {
                Some(Kind::Record) => {
                    out.push_str("#<");
                    out.push_str(&atom::record_name(value));
                    self.open.push(Task::Fields(value, 1));
                }
                _ => {
                    out.push_str("#(");
                    self.open.push(Task::Elements(value, 0));
                }
            }
            return;
        };
        if let Some((prefix, quoted)) = self.quotation(car, cdr) {
            out.push_str(prefix);
            // `,@x` would read as unquote-splicing.
            if prefix == "," && quoted.as_symbol().is_some_and(|s| s.name().starts_with('@')) {
                out.push(' ');
            }
            self.open.push(Task::Value(quoted));
            return;
        }
        out.push('(');
        self.open.push(Task::Tail(cdr));
        self.open.push(Task::Value(car));
    }

    /// The short form of `(quote x)` and similar forms.
    fn quotation(&self, car: Value, cdr: Value) -> Option<(&'static str, Value)> {
        let prefix = match car.as_symbol()?.name() {
            "quote" => "'",
            "quasiquote" => "`",
            "unquote" => ",",
            "unquote-splicing" => ",@",
            _ => return None,
        };
        let (quoted, rest) = cdr.uncons()?;
        (rest.is_nil() && !self.labels.contains(cdr)).then_some((prefix, quoted))
    }

    fn elements(&mut self, out: &mut String, vector: Value, i: usize) {
        let Some(element) = vector.vector_ref(i) else {
            out.push(')');
            return;
        };
        if i > 0 {
            out.push(' ');
        }
        self.open.push(Task::Elements(vector, i + 1));
        self.open.push(Task::Value(element));
    }

    fn fields(&mut self, out: &mut String, record: Value, i: usize) {
        let Some(field) = record.field(i) else {
            out.push('>');
            return;
        };
        out.push(' ');
        if let Some(name) = atom::field_name(record, i) {
            out.push_str(&name);
            out.push_str(": ");
        }
        self.open.push(Task::Fields(record, i + 1));
        self.open.push(Task::Value(field));
    }
}
